package config

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// Exporters that replace the store "blackhole": the one that discards spans, and the one, without
// spans, that queries read.
const (
	discarding = "nop"
	emptyStore = "memory"
)

// foreignStore says what becomes of a store of other tools.
type foreignStore struct {
	exporter string // type of exporter to use instead
	replaced bool   // the exporter is used without being asked for
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
	"grpc-plugin": {"grpc", false, "plugins are processes of their own: start the plugin as a remote storage server and " +
		"set --grpc-storage.server to its address; the spans that it has stored stay available"},
}

// readElsewhere replaces stores in a process that writes no spans: it reads those of a collector.
var readElsewhere = foreignStore{"grpc", false, "the query service reads the store of a collector: set --grpc-storage.server to its " +
	"address, port 17271; " + oldSpans}

// knownStores returns the types of exporters that a storage flag asks for. It reports stores of
// other tools: a warning for those that are replaced, an error for all others. written says that a
// pipeline ends in the store that is replaced.
func (o *overlay) knownStores(g GivenFlag, expected string, written bool) (types []string, ok bool) {
	ok = true
	for typ := range strings.SplitSeq(g.Text, ",") {
		typ = strings.TrimSpace(typ)
		foreign := foreignStores[typ]
		if foreign.exporter == "disk" && !written {
			foreign = readElsewhere
		}
		_, builtIn := o.base.factories[pipeline.KindExporter][foreign.exporter]
		switch {
		case !builtIn: // not foreign, or a custom build without the exporter
		case foreign.replaced:
			o.warn(g, "%q is replaced by %s; %s", typ, foreign.exporter, foreign.text)
			typ = foreign.exporter
		default:
			o.unsupportedStore(g, typ, expected, foreign)
			ok = o.options.replaceStores
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
func (o *overlay) unsupportedStore(g GivenFlag, typ, expected string, foreign foreignStore) {
	if o.options.replaceStores {
		o.problem(g, "%q is not %s of this program; replaced by %s; %s", typ, expected, foreign.exporter, foreign.text)
		if address := []string{"exporters", "grpc", "endpoint"}; foreign.exporter == "grpc" && !o.base.tree.Has(address...) {
			o.set(g, address, remoteStorage)
		}
		return
	}
	o.problem(g, "%q is not %s of this program; use %s: %s; %s; `tracing migrate` prints a configuration file",
		typ, expected, foreign.exporter, g.with(foreign.exporter), foreign.text)
}

// with returns the flag or environment variable with another value, for messages.
func (g GivenFlag) with(text string) string {
	if g.Env {
		return g.Flag.Env() + "=" + text
	}
	return "--" + g.Flag.Name + "=" + text
}
