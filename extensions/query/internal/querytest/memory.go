package querytest

import (
	"io"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/memory"
	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// WritableStore is a store that tests can fill.
type WritableStore interface {
	core.Store
	pipeline.Consumer
}

// Memory returns a memory exporter that is built as in a process in which an extension refers to
// it.
func Memory(t testing.TB) (store WritableStore) {
	t.Helper()
	type config struct {
		Storage pipeline.Ref[WritableStore] `yaml:"storage" doc:"The store."`
	}
	reader := pipeline.Extension("reader", func() config { return config{} }, func(_ pipeline.Settings, c config) (*int, error) {
		store = c.Storage.Get()
		return nil, nil
	})
	cfg, err := app.Load(app.LoadOptions{
		Factories: []pipeline.Factory{memory.Factory(), reader},
		Presets: []app.Preset{{Name: "test", YAML: []byte(`
exporters: {memory: {max_bytes: 1GiB}}
extensions: {reader: {storage: memory}}
service: {extensions: [reader]}
`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.New(cfg, app.Options{Log: io.Discard}); err != nil {
		t.Fatal(err)
	}
	return store
}

// FilledMemory returns a memory exporter with spans.
func FilledMemory(t testing.TB, td ptrace.Traces) WritableStore {
	t.Helper()
	store := Memory(t)
	if err := store.Consume(t.Context(), otlpdata.FromTraces(td, otlpdata.Meta{})); err != nil {
		t.Fatal(err)
	}
	return store
}
