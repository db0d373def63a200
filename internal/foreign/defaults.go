package foreign

import (
	"slices"
	"strings"
)

// fallback is a key with a different default in the Collector.
type fallback struct {
	section string
	types   []string
	key     string
	theirs  string // the default of the Collector
	here    string
	effect  string // of the difference
	// unless reports whether the difference has no effect because of another key.
	unless func(r *rewriter, component []string) bool
}

// Differences that do not change which spans are received, selected and sent, and how often, are
// not listed: limits, buffers and connection times.
var fallbacks = []fallback{
	{processors, []string{"probabilistic_sampler"}, "mode", "hash_seed", "equalizing", "other traces are selected", hasSeed},
	{receivers, []string{"kafka"}, "group_id", "otel-collector", "tracing", "reading does not continue at the offsets of that group", nil},
	{receivers, []string{"kafka"}, "initial_offset", "latest", "earliest", "a new group reads all records that there are", nil},
	{exporters, []string{"kafka"}, "key", "none", "trace_id", "records have a key, and the spans of one trace each", hasKey},
	{exporters, []string{"otlphttp", "otlp_http"}, "timeout", "30s", "5s", "a slow next hop gets more spans twice", nil},
	{exporters, []string{"zipkin"}, "default_service_name", "<missing service name>", "OTLPResourceNoServiceName",
		"resources without service.name have another name", nil},
}

// hasSeed reports whether a seed selects the mode `hash_seed` in both programs.
func hasSeed(r *rewriter, component []string) bool {
	seed := r.Text(at(component, "hash_seed")...)
	return seed != "" && seed != "0"
}

// hasKey reports whether the encoding determines the keys of records.
func hasKey(r *rewriter, component []string) bool {
	return strings.HasPrefix(r.Text(at(component, "encoding")...), "jaeger_")
}

// fallbacks reports the missing keys of all components to the File.
func (r *rewriter) fallbacks() {
	for _, d := range fallbacks {
		for _, id := range r.Keys(d.section) {
			component := []string{d.section, id}
			switch {
			case !slices.Contains(d.types, TypeOf(id)), !r.known(d.section, TypeOf(id)), r.Has(at(component, d.key)...):
			case d.unless == nil || !d.unless(r, component):
				r.Fallback(at(component, d.key), d.theirs, d.here, d.effect)
			}
		}
	}
}

// ownTypes are components that the Collector does not have.
var ownTypes = map[string][]string{
	receivers:  {"native", "thriftudp"},
	processors: {"adaptive_sampling", "resource_tags"},
	exporters:  {"disk", "memory", "grpc", "native"},
	extensions: {"admin", "query", "remote_storage", "sampling"},
}

// IsOwn reports whether a configuration has something that the Collector does not have: it is
// written for this program.
func IsOwn(f File) bool {
	for section, types := range ownTypes {
		for _, id := range f.Keys(section) {
			if slices.Contains(types, TypeOf(id)) {
				return true
			}
		}
	}
	return f.Has("service", "data_dir") || f.Has("service", "limits")
}
