package config

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// broker is the type of exporter that a storage flag may name although no component can read it:
// ingesters store what it writes.
const broker = "kafka"

// brokerDefaults are the keys of the broker that have other defaults in the tools whose flag this
// is, so that their ingesters read what this program writes.
var brokerDefaults = []struct{ key, value string }{{"topic", "jaeger-spans"}, {"encoding", "jaeger_proto"}}

// storeServer is the type of extension that serves a store to other processes. It is of no use in a
// process without a store.
const storeServer = "remote_storage"

// writesToBroker reports whether a storage flag asks only for what the configuration does: it
// writes to the broker, and has no store.
func (o *overlay) writesToBroker(g GivenFlag) bool {
	return strings.TrimSpace(g.Text) == broker && o.configured(flagOwner{kind: pipeline.KindExporter, typ: broker})
}

// replaceByBroker makes pipelines end in the broker instead of a store. It is an error if a
// component reads the store.
func (o *overlay) replaceByBroker(g GivenFlag, refs []Reference, old []pipeline.ID) {
	var servers []string
	for _, r := range refs {
		section, id := r.path[0], r.path[1]
		if section != pipeline.KindExtension.Section() || typeOf(id) != storeServer {
			o.brokerUnreadable(g, section, id, old)
			return
		}
		servers = append(servers, id)
	}
	o.moveWriters(g, old, []string{broker})
	o.setBrokerDefaults(g)
	for _, id := range servers {
		o.remove(g, pipeline.KindExtension, id)
	}
}

func (o *overlay) brokerUnreadable(g GivenFlag, section, id string, old []pipeline.ID) {
	reader := strings.TrimSuffix(section, "s") + " " + id
	if !o.isWritten(old) {
		o.problem(g, "spans in Kafka cannot be queried, and %s reads a store; read that of an ingester: set --grpc-storage.server to its "+
			"address, port 17271, and %s", reader, g.with("grpc"))
		return
	}
	o.problem(g, "spans in Kafka cannot be queried, and %s reads the store; run the preset collector, "+
		"or to store them here as well, use %s", reader, g.with("disk,"+broker))
}

// setBrokerDefaults sets the topic and encoding of a broker that a storage flag has added.
func (o *overlay) setBrokerDefaults(g GivenFlag) {
	if o.base.tree.Has("exporters", broker) {
		return
	}
	for _, d := range brokerDefaults {
		o.set(g, []string{"exporters", broker, d.key}, d.value)
	}
}

// readableFirst moves the broker behind the stores: spans are read from the first of them.
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

func typeOf(id string) string {
	typ, _, _ := strings.Cut(id, "/")
	return typ
}
