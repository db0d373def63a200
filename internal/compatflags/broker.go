package compatflags

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// broker is a type of exporter that --span-storage.type may name although no component can read
// from it: ingesters store the spans that it writes.
const broker = "kafka"

// brokerDefaults are keys of the broker whose defaults differ in Jaeger 1, so that its ingesters
// can read what this program writes.
var brokerDefaults = []struct{ key, value string }{{"topic", "jaeger-spans"}, {"encoding", "jaeger_proto"}}

// storeServer is the type of extension that serves a store to other processes. It is useless in a
// process without a store.
const storeServer = "remote_storage"

// writesToBroker reports whether the flag names only the broker, so that the configuration needs no
// store.
func writesToBroker(c pipeline.FlagTarget, text string) bool {
	_, configured := c.Exporters()
	return strings.TrimSpace(text) == broker && slices.Contains(configured, broker)
}

// replaceByBroker makes pipelines export to the broker instead of a store. It is an error if a
// component reads the store.
func replaceByBroker(c pipeline.FlagTarget, store pipeline.FlagStore) {
	for _, r := range store.Readers {
		if r.Kind != pipeline.KindExtension || r.ID.Type != storeServer {
			brokerUnreadable(c, r.Kind.String()+" "+r.ID.String(), store.Written)
			return
		}
	}
	c.ReplaceStore([]string{broker})
	setBrokerDefaults(c)
	for _, r := range store.Readers {
		c.Remove(r.Kind, r.ID)
	}
}

func brokerUnreadable(c pipeline.FlagTarget, reader string, written bool) {
	if !written {
		c.Problem("spans in Kafka cannot be queried, and %s reads a store; read the store of an ingester: set --grpc-storage.server to its "+
			"address, port 17271, and %s", reader, c.With("grpc"))
		return
	}
	c.Problem("spans in Kafka cannot be queried, and %s reads the store; run the preset collector, "+
		"or to store them here as well, use %s", reader, c.With("disk,"+broker))
}

// setBrokerDefaults sets the topic and encoding of a broker that the flag has added.
func setBrokerDefaults(c pipeline.FlagTarget) {
	if c.Has("exporters", broker) {
		return
	}
	for _, d := range brokerDefaults {
		c.Set(d.value, "exporters", broker, d.key)
	}
}

// readableFirst moves the broker after the stores: spans are read from the first store.
func readableFirst(types []string) {
	slices.SortStableFunc(types, func(a, b string) int {
		switch {
		case a == broker && b != broker:
			return 1
		case b == broker && a != broker:
			return -1
		}
		return 0
	})
}
