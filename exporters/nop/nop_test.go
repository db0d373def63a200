package nop

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDiscards(t *testing.T) {
	if f := Factory(); f.Type() != "nop" || f.Kind() != pipeline.KindExporter {
		t.Errorf("factory of %s %q", f.Kind(), f.Type())
	}
	e, err := newExporter(pipeline.Settings{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Consume(t.Context(), otlpdata.FromTraces(ptrace.NewTraces(), otlpdata.Meta{})); err != nil {
		t.Errorf("Consume: %v", err)
	}
	if e.Durability() != pipeline.DurabilityNone {
		t.Errorf("durability %s, want none", e.Durability())
	}
}
