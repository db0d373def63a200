package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/groupbytraceprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"gopkg.in/yaml.v3"

	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// collectorFile is a file of the Collector in which all keys with defaults are missing.
const collectorFile = `
receivers:
  otlp: {protocols: {grpc: {}, http: {}}}
  zipkin: {}
  kafka: {}
processors:
  batch: {}
  probabilistic_sampler: {sampling_percentage: 0}
  filter: {}
  groupbytrace: {}
  tail_sampling: {policies: [{name: all, type: always_sample}]}
exporters:
  otlp: {endpoint: "localhost:4317", sending_queue: {}}
  otlphttp: {endpoint: "http://localhost:4318", sending_queue: {}}
  debug: {}
  kafka: {sending_queue: {}}
  zipkin: {endpoint: "http://localhost:9411/api/v2/spans", sending_queue: {}}
extensions:
  health_check: {}
service:
  extensions: [health_check]
  pipelines:
    traces:
      receivers: [otlp, zipkin, kafka]
      processors: [batch, probabilistic_sampler, filter, groupbytrace, tail_sampling]
      exporters: [otlp, otlphttp, debug, kafka, zipkin]
`

// renamed are keys of the Collector that have another name here.
var renamed = map[string]string{
	"receivers.kafka.dial_timeout":               "connect_timeout",
	"receivers.kafka.max_decompress_batch_bytes": "max_decompressed_batch_size",
	"receivers.kafka.traces.encoding":            "encoding",
	"receivers.kafka.traces.topics":              "topic",
	"exporters.kafka.dial_timeout":               "connect_timeout",
	"exporters.kafka.partition_traces_by_id":     "key",
	"exporters.kafka.traces.encoding":            "encoding",
	"exporters.kafka.traces.topic":               "topic",
}

// meant are defaults that the Collector replaces when it starts, and values with another name here.
var meant = map[string]string{
	"processors.probabilistic_sampler.mode":  "hash_seed",
	"exporters.kafka.partition_traces_by_id": "none",
}

// accepted are keys whose defaults differ without an effect on what is received, selected and sent,
// with the reason.
var accepted = []struct{ key, reason string }{
	{"*.(read|write)_buffer_size", "buffers of connections"},
	{"*.(read|write|read_header|idle|session|dial)_timeout", "limits of connections"},
	{"*.(tls|cors|auth|keepalive|network|middlewares).*", "absent, or limits of connections"},
	{"*.(transport|keep_alives_enabled|force_attempt_http2|cookies|proxy_url|user_agent|http2_\\w+|max_idle_conns.*)", "connections"},
	{"*.(logs|metrics|profiles?)(_\\w+)?", "only traces"},
	{"*.(logs|metrics|profiles).*", "only traces"},
	{"*.sending_queue.(batch|storage|sizer|wait_for_result)", "without a value, or the same in other words"},
	{"*.client_id", "only a name in logs and quotas of brokers"},
	{"*.kafka.(protocol_version|conn_idle_timeout|metadata.*|use_leader_epoch|rack_id)", "negotiated, or connections"},
	{"receivers.kafka.(autocommit.enable|message_marking.*|error_backoff.*|partition_processing.*)",
		"offsets are committed after spans were accepted, in the order of the partition"},
	{"receivers.kafka.(group_rebalance_strategies|header_extraction.*|telemetry.*|traces.exclude_topics|max_decompress_batch_bytes)",
		"absent, or a limit"},
	{"exporters.kafka.producer.(required_acks|linger|flush_max_messages|max_.*|allow_auto_topic_creation|compression_params.*)",
		"acknowledged by more brokers, or the sizes of requests"},
	{"exporters.kafka.(include_metadata_keys|record_.*|signal_header|partition_.*|topic_from_attribute|traces\\..*_metadata_key)",
		"absent, or keys of records, which do not exist"},
	{"exporters.kafka.(timeout|retry_on_failure.initial_interval)", "the producer repeats by itself, without duplicates"},
	{"processors.batch.(timeout|send_batch_max_size)", "requests wait for each other only under load"},
	{"processors.probabilistic_sampler.(attribute_source|from_attribute)", "for logs"},
	{"exporters.debug.(output_paths|use_internal_logger|sending_queue|verbosity)", "standard error"},
	{"extensions.health_check.(use_v2|check_collector_pipeline.*|component_health|grpc|http|response_body)", "absent"},
	{"exporters.otlphttp.traces_endpoint", "absent"},
	{"processors.tail_sampling.(tail_storage|policies.*)", "absent"},
}

// minSame is the minimum number of defaults that are the same in both programs.
const minSame = 70

// Every default of the Collector for a component that is accepted under its name is the same here,
// has a warning that names both values, or is in the list of those without an effect.
func TestCollectorDefaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "collector.yaml")
	if err := os.WriteFile(file, []byte(collectorFile), 0o600); err != nil {
		t.Fatal(err)
	}
	_, out, _ := inprocess.RunCommand(t, "print-config", "--defaults", "--config", file)
	here := leaves(t, []byte(out))
	_, _, log := inprocess.RunCommand(t, "validate", "--config", file)
	warned, same := map[string]bool{}, 0
	for key, theirs := range collectorDefaults(t) {
		other := key
		if to := renamed[key]; to != "" {
			other = strings.Join(strings.SplitN(key, ".", 3)[:2], ".") + "." + to
		}
		theirs, ours := firstOf(meant[key], theirs), here[other]
		warning := regexp.MustCompile(regexp.QuoteMeta(other) + `: not set: (.*) is used, (.*) by the OpenTelemetry Collector`).
			FindStringSubmatch(log)
		warned[other] = warning != nil
		switch {
		case warning != nil:
			if normal(warning[2]) != normal(theirs) || ours != "" && normal(warning[1]) != normal(ours) {
				t.Errorf("%s: %s here, %s in the Collector, but the warning says %q", key, ours, theirs, warning[0])
			}
		case normal(theirs) == normal(ours):
			same++
		case !isAccepted(key):
			t.Errorf("%s: %q here, %q in the Collector, without a warning", key, ours, theirs)
		}
	}
	if same < minSame {
		t.Errorf("only %d defaults are the same, want %d or more; is the comparison empty?", same, minSame)
	}
	for _, m := range regexp.MustCompile(`(\S+): not set: `).FindAllStringSubmatch(log, -1) {
		if !warned[m[1]] {
			t.Errorf("a warning about %s, for which the Collector has no default", m[1])
		}
	}
}

// collectorDefaults returns the defaults of the Collector by path: those in the file that
// test/collector writes, and those of the components in this program.
func collectorDefaults(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "collector-defaults.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := leaves(t, text)
	for name, f := range map[string]component.Factory{"filter": filterprocessor.NewFactory(),
		"groupbytrace": groupbytraceprocessor.NewFactory(), "tail_sampling": tailsamplingprocessor.NewFactory()} {
		c := confmap.New()
		if err := c.Marshal(f.CreateDefaultConfig()); err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(map[string]any{"processors": map[string]any{name: c.ToStringMap()}})
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range leaves(t, text) {
			all[key] = value
		}
	}
	for key := range all { // translated to others, which have their own keys, or left out
		if strings.HasPrefix(key, "receivers.jaeger.") || strings.HasPrefix(key, "processors.memory_limiter.") {
			delete(all, key)
		}
	}
	return all
}

// leaves returns the values in YAML text by path. Lists are values.
func leaves(t *testing.T, text []byte) map[string]string {
	t.Helper()
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	var add func(path string, v any)
	add = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				add(strings.TrimPrefix(path+"."+key, "."), inner)
			}
		case nil:
			all[path] = ""
		case []any:
			all[path] = strings.Trim(fmt.Sprint(v), "[]")
		default:
			all[path] = fmt.Sprint(v)
		}
	}
	add("", tree)
	return all
}

// normal returns a number or a duration in one notation, and "" for values that stand for none.
func normal(text string) string {
	if d, err := time.ParseDuration(text); err == nil {
		text = strconv.FormatInt(int64(d), 10)
	}
	for unit, size := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if n, err := strconv.Atoi(strings.TrimSuffix(text, unit)); err == nil && strings.HasSuffix(text, unit) {
			text = strconv.Itoa(n * size)
		}
	}
	if slices.Contains([]string{"0", "false", "{}", "null"}, text) {
		return ""
	}
	return text
}

func isAccepted(key string) bool {
	for _, a := range accepted {
		pattern := "^" + strings.ReplaceAll(a.key, "*.", `.*\.`) + "$"
		if regexp.MustCompile(pattern).MatchString(key) {
			return true
		}
	}
	return false
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
