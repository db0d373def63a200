// Package collector holds tests with components of the OpenTelemetry Collector that this program
// does not contain. It is a module of its own, so that they are no dependencies of the program.
package collector

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/kafkaexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/zipkinexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/healthcheckextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/probabilisticsamplerprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/jaegerreceiver"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/kafkareceiver"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/zipkinreceiver"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"gopkg.in/yaml.v3"
)

// file holds the defaults. Tests in test/e2e/config compare the defaults of this program with it.
const file = "../e2e/config/testdata/collector-defaults.yaml"

var update = flag.Bool("update", false, "rewrite the file of defaults")

// TestDefaults checks that the file has the defaults that the factories return.
func TestDefaults(t *testing.T) {
	empty := map[string]any{}
	protocols := func(names ...string) map[string]any {
		all := map[string]any{}
		for _, name := range names {
			all[name] = empty
		}
		return map[string]any{"protocols": all}
	}
	queue := map[string]any{"sending_queue": empty}
	all := map[string]map[string]any{"receivers": {}, "processors": {}, "exporters": {}, "extensions": {}}
	add := func(section, name string, f component.Factory, given map[string]any) {
		t.Helper()
		cfg := f.CreateDefaultConfig()
		if err := confmap.NewFromStringMap(given).Unmarshal(cfg); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out := confmap.New()
		if err := out.Marshal(cfg); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[section][name] = out.ToStringMap()
	}
	add("receivers", "otlp", otlpreceiver.NewFactory(), protocols("grpc", "http"))
	add("receivers", "jaeger", jaegerreceiver.NewFactory(), protocols("grpc", "thrift_http", "thrift_compact", "thrift_binary"))
	add("receivers", "zipkin", zipkinreceiver.NewFactory(), empty)
	add("receivers", "kafka", kafkareceiver.NewFactory(), empty)
	add("processors", "batch", batchprocessor.NewFactory(), empty)
	add("processors", "memory_limiter", memorylimiterprocessor.NewFactory(), empty)
	add("processors", "probabilistic_sampler", probabilisticsamplerprocessor.NewFactory(), empty)
	add("exporters", "otlp", otlpexporter.NewFactory(), queue)
	add("exporters", "otlphttp", otlphttpexporter.NewFactory(), queue)
	add("exporters", "debug", debugexporter.NewFactory(), empty)
	add("exporters", "kafka", kafkaexporter.NewFactory(), queue)
	add("exporters", "zipkin", zipkinexporter.NewFactory(), queue)
	add("extensions", "health_check", healthcheckextension.NewFactory(), empty)
	var got bytes.Buffer
	got.WriteString("# Defaults of the OpenTelemetry Collector; written by test/collector.\n")
	enc := yaml.NewEncoder(&got)
	enc.SetIndent(2)
	if err := enc.Encode(all); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s differs; run the test with -update. Got\n%s", file, got.Bytes())
	}
}
