package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline"
)

// values are texts that flags and keys may have. Some of them are wrong for each.
func values() []string {
	if testing.Short() {
		return []string{"true", "word"}
	}
	return []string{"true", "false", "0", "word"}
}

// Every flag and variable of Jaeger 1 that the program knows is in the output or in a note.
func TestKnownFlagsAreListed(t *testing.T) {
	var flags []pipeline.Flag
	for _, f := range tracing.Components() {
		flags = append(flags, f.FlagList()...)
	}
	for _, name := range []string{"data-dir", "log-level", "log-encoding", "config-file", "span-storage.type"} {
		flags = append(flags, pipeline.Flag{Name: name})
	}
	for _, value := range values() {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			for _, program := range []string{"all-in-one", "agent", "collector", "query", "ingester"} {
				line, names := "jaegertracing/jaeger-"+program, []string{}
				for _, f := range flags {
					line, names = line+" --"+f.Name+"="+value, append(names, "--"+f.Name)
				}
				for _, lost := range lostFrom(line, names...) {
					t.Errorf("%s: %s=%s is lost", program, lost, value)
				}
			}
			var env strings.Builder
			var names []string
			for _, f := range flags {
				if name := f.Env(); !f.CommandLine && !slices.Contains(names, name) {
					names = append(names, name)
					fmt.Fprintf(&env, "%s=%s\n", name, value)
				}
			}
			for _, lost := range lostFrom(env.String(), names...) {
				t.Errorf("%s=%s is lost", lost, value)
			}
		})
	}
}

// Every key of the components of Jaeger 2 is in the output or in a note.
func TestKnownKeysOfJaeger2AreListed(t *testing.T) {
	for _, value := range values() {
		for _, path := range jaeger2Keys() {
			text := withKey(t, path, value)
			if lost := lostFrom(text, path[len(path)-1]); len(lost) > 0 && !isListed(text, path) {
				t.Errorf("%s: %s is lost: %s", strings.Join(path, "."), value, lost)
			}
		}
	}
}

// jaeger2Keys returns the paths of all keys of the components that only Jaeger 2 has.
func jaeger2Keys() (paths [][]string) {
	add := func(prefix, keys string) {
		for key := range strings.FieldsSeq(keys) {
			paths = append(paths, strings.Split(prefix+"."+key, "."))
		}
	}
	const tls = " tls.insecure tls.insecure_skip_verify tls.ca_file tls.cert_file tls.key_file tls.server_name_override"
	const backend = "extensions.jaeger_storage.backends.a."
	add("extensions.jaeger_query", "base_path bearer_token_propagation enable_tracing max_clock_skew_adjust max_trace_size "+
		"storage.traces_archive storage.metrics ui.config_file ui.assets_path ui.log_access http.endpoint grpc.endpoint "+
		"multi_tenancy.enabled multi_tenancy.header multi_tenancy.tenants ui_config trace_storage_archive metrics_store header_forwarding ai "+
		"otlp_proxy")
	add(backend+"memory", "max_traces")
	add(backend+"badger", "ttl.spans directories.keys directories.values ephemeral consistency maintenance_interval "+
		"metrics_update_interval read_only directory_key directory_value span_store_ttl")
	add(backend+"grpc", "endpoint timeout connection-timeout max_recv_msg_size_mib multi_tenancy.enabled multi_tenancy.header "+
		"multi_tenancy.tenants header_forwarding server writer.endpoint"+tls)
	add(backend+"clickhouse", "protocol addresses database auth.basic.username auth.basic.password dial_timeout create_schema ttl "+
		"default_search_depth max_search_depth attribute_metadata_cache_ttl attribute_metadata_cache_max_size"+tls)
	add(backend+"cassandra", "schema.keyspace schema.trace_ttl connection.servers connection.auth.basic.username index.tags")
	add(backend+"elasticsearch", "server_urls indices.index_prefix auth.basic.username bulk_processing.max_bytes use_aliases use_ilm "+
		"service_cache_ttl max_doc_count tags_as_fields.all create_mappings version")
	add("extensions.jaeger_storage.metric_backends.m", "prometheus.endpoint elasticsearch.server_urls")
	add("extensions.remote_sampling", "file.path file.reload_interval file.default_sampling_probability adaptive.sampling_store "+
		"adaptive.initial_sampling_probability adaptive.target_samples_per_second adaptive.delta_tolerance adaptive.calculation_interval "+
		"adaptive.aggregation_buckets adaptive.calculation_buckets adaptive.calculation_delay adaptive.min_sampling_probability "+
		"adaptive.min_samples_per_second adaptive.leader_lease_refresh_interval adaptive.follower_lease_refresh_interval http.endpoint "+
		"grpc.endpoint")
	add("extensions.remote_storage", "endpoint storage max_recv_msg_size_mib multi_tenancy.enabled multi_tenancy.header")
	add("extensions.jaeger_mcp", "http.endpoint server_name")
	add("exporters.jaeger_storage_exporter", "queue.num_consumers queue.queue_size retry_on_failure.enabled timeout")
	return paths
}

// withKey returns a Jaeger 2 configuration in which the key at path has a value.
func withKey(t *testing.T, path []string, value string) string {
	t.Helper()
	tree := map[string]any{}
	set := func(value any, path ...string) {
		at := tree
		for _, key := range path[:len(path)-1] {
			if _, ok := at[key].(map[string]any); !ok {
				at[key] = map[string]any{}
			}
			at = at[key].(map[string]any)
		}
		at[path[len(path)-1]] = value
	}
	set("a", "extensions", "jaeger_query", "storage", "traces")
	if path[2] != "backends" {
		set(map[string]any{}, "extensions", "jaeger_storage", "backends", "a", "memory")
	}
	set(map[string]any{}, "receivers", "otlp", "protocols", "grpc")
	set("a", "exporters", "jaeger_storage_exporter", "trace_storage")
	set(map[string]any{"receivers": []string{"otlp"}, "exporters": []string{"jaeger_storage_exporter"}}, "service", "pipelines", "traces")
	used := []string{"jaeger_storage", "jaeger_query"}
	if path[0] == "extensions" && !slices.Contains(used, path[1]) {
		used = append(used, path[1])
	}
	set(used, "service", "extensions")
	set(value, path...)
	out, err := yaml.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
