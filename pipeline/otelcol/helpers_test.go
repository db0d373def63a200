package otelcol_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"gopkg.in/yaml.v3"
)

// passing is a processor of the Collector that passes spans on.
type passing struct {
	component.StartFunc
	component.ShutdownFunc
	consumer.Traces
}

func createNothing(_ context.Context, _ processor.Settings, _ component.Config, next consumer.Traces) (processor.Traces, error) {
	return &passing{Traces: next}, nil
}

// blocksOf returns the processors of a configuration file.
func blocksOf(tb testing.TB, file string) map[string]any {
	b, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var config struct{ Processors map[string]any }
	if err := yaml.Unmarshal(b, &config); err != nil {
		tb.Fatal(err)
	}
	return config.Processors
}

func encodeTree(tree any) []byte {
	b, _ := json.Marshal(tree) //nolint:errcheck // only scalars, lists and maps
	return b
}

// decodeTree returns a tree as the loader of configurations makes it.
func decodeTree(encoded []byte) (map[string]any, bool) {
	var tree map[string]any
	if json.Unmarshal(encoded, &tree) != nil || tree == nil {
		return nil, false
	}
	return whole(tree).(map[string]any), true
}

// whole replaces numbers without fraction by int, which YAML has and JSON has not.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case float64:
		if n := int(v); float64(n) == v {
			return n
		}
	}
	return v
}
