package compatflags

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// Whole returns the flags of the whole configuration.
func Whole() []pipeline.Flag {
	return []pipeline.Flag{
		{Name: "config-file", Whole: true, CommandLine: true, Refused: "file of flags in the format of other tools; " +
			"run `tracing migrate --from jaeger1 FILE > tracing.yaml`, then use --config tracing.yaml"},
		{Name: "span-storage.type", Whole: true, Apply: replaceStore, Distinctive: "SPAN_STORAGE_",
			Doc: "Type of exporter that replaces the store of the configuration and every reference to it. " +
				"If it lists several types, separated by commas, spans are written to all of them and read from the first."},
	}
}

// replaceStore replaces the exporters that other components reference.
func replaceStore(c pipeline.FlagTarget, text string) {
	store := c.Store()
	if len(store.Readers) == 0 {
		if !writesToBroker(c, text) {
			c.Absent("the configuration has no store: no component refers to an exporter")
		}
		return
	}
	types, ok := knownStores(c, text, store)
	if !ok {
		return
	}
	readableFirst(types)
	readFrom := types[0]
	switch {
	case readFrom == broker && isBuiltIn(c, broker):
		replaceByBroker(c, store)
		return
	case readFrom == discarding: // reads find nothing
		readFrom = emptyStore
	}
	if c.ReplaceStore(types, readFrom) && slices.Contains(types, broker) {
		setBrokerDefaults(c)
	}
}

func isBuiltIn(c pipeline.FlagTarget, exporter string) bool {
	known, _ := c.Exporters()
	return slices.Contains(known, exporter)
}

// Exporters that replace the store "blackhole": one discards spans, and queries read the other one,
// which is empty.
const (
	discarding = "nop"
	emptyStore = "memory"
)

// foreignStore says what replaces a store of other tools.
type foreignStore struct {
	exporter string // type of exporter to use instead
	replaced bool   // the exporter is used automatically
	text     string // why, and what happens to stored spans
}

const (
	oldSpans = "spans that it has stored are not read: keep the old query service until they have expired"
	database = "the embedded store needs no database; " + oldSpans
)

// foreignStores holds values of --span-storage.type that are not types of exporters.
var foreignStores = map[string]foreignStore{
	"badger":        {"disk", true, oldSpans},
	"blackhole":     {discarding, true, "spans are discarded, and queries find nothing"},
	"cassandra":     {"disk", false, database},
	"elasticsearch": {"disk", false, database},
	"opensearch":    {"disk", false, database},
	"grpc-plugin": {"grpc", false, "plugins are separate processes: start the plugin as a remote storage server and " +
		"set --grpc-storage.server to its address; the spans that it has stored stay available"},
}

// readElsewhere replaces stores in a process that writes no spans but reads a collector's store.
var readElsewhere = foreignStore{"grpc", false, "the query service reads the store of a collector: set --grpc-storage.server to its " +
	"address, port 17271; " + oldSpans}

// knownStores returns the types of exporters that the flag names. It reports stores of other tools:
// a warning for stores that are replaced, an error for all others.
func knownStores(c pipeline.FlagTarget, text string, store pipeline.FlagStore) (types []string, ok bool) {
	ok = true
	for typ := range strings.SplitSeq(text, ",") {
		typ = strings.TrimSpace(typ)
		foreign := foreignStores[typ]
		if foreign.exporter == "disk" && !store.Written {
			foreign = readElsewhere
		}
		switch {
		case !isBuiltIn(c, foreign.exporter): // not foreign, or a custom build without the exporter
		case foreign.replaced:
			c.Warn("%q is replaced by %s; %s", typ, foreign.exporter, foreign.text)
			typ = foreign.exporter
		default:
			unsupportedStore(c, typ, store.Expected, foreign)
			ok = c.Explains()
			typ = foreign.exporter
		}
		if !slices.Contains(types, typ) {
			types = append(types, typ)
		}
	}
	return types, ok
}

// remoteStorage is the default address of a remote storage server.
const remoteStorage = "localhost:17271"

// unsupportedStore reports a store that is not supported. If it is replaced by a remote storage
// server without an address, it gets one, so that the configuration can be loaded.
func unsupportedStore(c pipeline.FlagTarget, typ, expected string, foreign foreignStore) {
	if c.Explains() {
		c.Problem("%q is not %s of this program; replaced by %s; %s", typ, expected, foreign.exporter, foreign.text)
		if address := []string{"exporters", "grpc", "endpoint"}; foreign.exporter == "grpc" && !c.Has(address...) {
			c.Set(remoteStorage, address...)
		}
		return
	}
	c.Problem("%q is not %s of this program; use %s: %s; %s; `tracing migrate` prints a configuration file",
		typ, expected, foreign.exporter, c.With(foreign.exporter), foreign.text)
}
