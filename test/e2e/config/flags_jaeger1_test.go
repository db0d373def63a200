package config_test

import (
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestStorageTypes checks what replaces each store of Jaeger 1, as a variable and as a flag.
func TestStorageTypes(t *testing.T) {
	const old = "spans that it has stored are not read: keep the old query service until they have expired"
	f := func(store, preset, want string) {
		t.Helper()
		t.Setenv("SPAN_STORAGE_TYPE", store)
		if got := changedLinesOf(t, preset); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", store, got, want)
		}
		t.Setenv("SPAN_STORAGE_TYPE", "")
		want = strings.ReplaceAll(want, "environment SPAN_STORAGE_TYPE", "--span-storage.type")
		want = strings.ReplaceAll(want, "SPAN_STORAGE_TYPE=", "--span-storage.type=")
		if got := changedLinesOf(t, preset, "--span-storage.type="+store); got != want {
			t.Errorf("--span-storage.type=%s: got\n%s\nwant\n%s", store, got, want)
		}
	}
	const v = "environment SPAN_STORAGE_TYPE"
	unsupported := func(store, use, text string) string {
		return v + `: "` + store + `" is not a span store of this program; use ` + use + `: SPAN_STORAGE_TYPE=` + use + "; " + text +
			"; `tracing migrate` prints a configuration file\n"
	}
	f("badger", "all-in-one", "warning: "+v+`: "badger" is replaced by disk; `+old+"\n")
	f("badger", "collector", "warning: "+v+`: "badger" is replaced by disk; `+old+"\n")
	f("blackhole", "collector", "nop: {} # "+v+"\nmemory: {} # "+v+"\nstorage: memory # "+v+"\nexporters: [nop] # "+v+
		"warning: "+v+`: "blackhole" is replaced by nop; spans are discarded, and queries find nothing`+"\n")
	for _, store := range []string{"cassandra", "elasticsearch", "opensearch"} {
		f(store, "all-in-one", unsupported(store, "disk", "the embedded store needs no database; "+old))
	}
	f("grpc-plugin", "collector", unsupported("grpc-plugin", "grpc", "plugins are separate processes: start the plugin as a "+
		"remote storage server and set --grpc-storage.server to its address; the spans that it has stored stay available"))
	f("casandra", "collector", v+`: "casandra" is not a span store; known: clickhouse, disk, grpc, memory`+"\n")
}

// TestBadger checks that the flags of the embedded store of Jaeger 1 keep their effect.
func TestBadger(t *testing.T) {
	for name, value := range map[string]string{"SPAN_STORAGE_TYPE": "badger", "BADGER_EPHEMERAL": "false",
		"BADGER_DIRECTORY_VALUE": "/badger/data", "BADGER_DIRECTORY_KEY": "/badger/key", "BADGER_SPAN_STORE_TTL": "48h",
		"BADGER_CONSISTENCY": "true"} {
		t.Setenv(name, value)
	}
	got := changedLines(t)
	for _, want := range []string{
		"directory: /badger/data/disk # environment BADGER_DIRECTORY_VALUE",
		"time: 48h # environment BADGER_SPAN_STORE_TTL",
		`SPAN_STORAGE_TYPE: "badger" is replaced by disk`,
		"environment BADGER_DIRECTORY_KEY: has no effect: ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "EPHEMERAL") || strings.Contains(got, "CONSISTENCY") {
		t.Errorf("warning about what the store does anyway:\n%s", got)
	}
	got = changedLines(t, "--badger.ephemeral")
	if !strings.Contains(got, "--badger.ephemeral: has no effect: the embedded store keeps its files") {
		t.Error(got)
	}
}

// TestFamilies checks flags without effect by their family, and those that must not be ignored.
func TestFamilies(t *testing.T) {
	for _, line := range []string{"es.server-urls=http://a", "es.tls.enabled", "es-archive.enabled=true", "cassandra.servers=a,b",
		"cassandra-archive.tls", "prometheus.server-url=http://p", "grpc-storage-plugin.binary=/p",
		"reporter.tchannel.host-port=c:14267", "metrics-storage.type=prometheus", "dependency-storage.type=x"} {
		name, _, _ := strings.Cut(line, "=")
		preset := "all-in-one"
		got := changedLinesOf(t, preset, "--"+line)
		if !strings.HasPrefix(got, "warning: --"+name+": has no effect: ") || strings.Count(got, "\n") != 1 {
			t.Errorf("--%s: %q", line, got)
		}
	}
	for line, want := range map[string]string{
		"kafka.consumer.brokers=k:9092": "no receiver of type kafka is configured",
		"kafka.topic=spans":             "no receiver of type kafka is configured, and no exporter of type kafka is configured",
		"config-file=jaeger.yaml":       "tracing migrate --from jaeger1 FILE",
	} {
		if got := changedLines(t, "--"+line); strings.HasPrefix(got, "warning") || !strings.Contains(got, want) {
			t.Errorf("--%s: %q", line, got)
		}
	}
	t.Setenv("KAFKA_CONSUMER_BROKERS", "k:9092")
	t.Setenv("KAFKA_BROKERS", "k:9092")
	t.Setenv("CONFIG_FILE", "x")
	got := changedLines(t)
	if strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "warning: environment KAFKA_CONSUMER_BROKERS: has no effect: ") {
		t.Errorf("variables: %q", got)
	}
}

// TestDownsampling checks that the flag adds a sampler, behind the processor that counts all
// traces.
func TestDownsampling(t *testing.T) {
	t.Setenv("SAMPLING_CONFIG_TYPE", "adaptive")
	got := changedLinesOf(t, "collector", "--downsampling.ratio=0.07")
	for _, want := range []string{"sampling_percentage: 7 # --downsampling.ratio",
		"processors: [adaptive_sampling, probabilistic_sampler, batch] #"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	t.Setenv("SAMPLING_CONFIG_TYPE", "")
	if got := changedLinesOf(t, "collector", "--downsampling.ratio=1"); got != "" {
		t.Errorf("ratio 1: %q", got)
	}
	if got := changedLinesOf(t, "collector", "--downsampling.ratio=7"); got != "--downsampling.ratio: \"7\" is not a share from 0 to 1\n" {
		t.Errorf("ratio 7: %q", got)
	}
}

// TestMisspelt checks that misspelt variables are named, and variables of other programs are not.
func TestMisspelt(t *testing.T) {
	f := func(name, value, want string) {
		t.Helper()
		t.Setenv(name, value)
		if want != "" {
			want = "warning: environment " + name + ": has no effect: unknown variable; did you mean " + want + "?\n"
		}
		if got := changedLines(t); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		t.Setenv(name, "")
	}
	f("COLLECTOR_OTLP_ENABLE", "true", "COLLECTOR_OTLP_ENABLED")
	f("SPAN_STORAGE_TYP", "badger", "SPAN_STORAGE_TYPE")
	f("ES_SERVER_URL", "http://a", "ES_SERVER_URLS")
	f("COLLECTOR_OTLP_GRPC_ENDPOINT", ":4317", "COLLECTOR_OTLP_GRPC_HOST_PORT")
	f("COLLECTOR_ZIPKIN_HOSTPORT", ":9411", "COLLECTOR_ZIPKIN_HOST_PORT")
	for name, value := range map[string]string{
		"COLLECTOR_PORT": "tcp://10.0.0.1:14268", "COLLECTOR_PORT_4317_TCP": "tcp://10.0.0.1:4317", "COLLECTOR_PORT_4317_TCP_PROTO": "tcp",
		"COLLECTOR_PORT_4317_TCP_ADDR": "10.0.0.1", "COLLECTOR_SERVICE_HOST": "10.0.0.1", "COLLECTOR_SERVICE_PORT": "4317",
		"COLLECTOR_SERVICE_PORT_OTLP_GRPC": "4317", "QUERY_PORT": "tcp://10.0.0.1:16686", "QUERY_SERVICE_HOST": "10.0.0.1",
		"CASSANDRA_PORT": "tcp://10.0.0.1:9042", "CASSANDRA_HOME": "/opt/cassandra", "KAFKA_HEAP_OPTS": "-Xmx1g", "ES_JAVA_OPTS": "-Xms1g",
		"JAEGER_AGENT_HOST": "agent", "JAEGER_SERVICE_NAME": "shop", "JAEGER_TAGS": "a=b", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4317",
		"PROMETHEUS_URL": "http://p", "MEMORY_LIMIT": "1Gi",
	} {
		t.Setenv(name, value)
	}
	if got := changedLines(t); got != "" {
		t.Errorf("variables of other programs: %s", got)
	}
}

// TestUnknownFlag checks that an unknown flag is answered with the three nearest.
func TestUnknownFlag(t *testing.T) {
	code, _, stderr := inprocess.RunCommand(t, "validate", "--collector.otlp.grpc.hostport=:1")
	const want = "tracing: unknown flag --collector.otlp.grpc.hostport; did you mean --collector.otlp.grpc.host-port, " +
		"--collector.otlp.grpc.tls.cert or --collector.otlp.http.host-port?\n"
	if code != 2 || !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") > 5 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
