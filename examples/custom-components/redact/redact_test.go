package redact

import (
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The processor passes the conformance suite. The spans of the suite have an attribute `request`.
func TestConformance(t *testing.T) {
	pipelinetest.Processor(t, Factory(), pipelinetest.ProcessorOptions{
		Config: "{keys: [request, password], replacement: removed}",
		Expect: func(spans ptrace.Traces) {
			for _, rs := range spans.ResourceSpans().All() {
				for _, ss := range rs.ScopeSpans().All() {
					for _, span := range ss.Spans().All() {
						span.Attributes().PutStr("request", "removed")
					}
				}
			}
		},
	})
}

func TestReplacedValuesAreCounted(t *testing.T) {
	f := pipelinetest.NewFixture("redact", 1<<20)
	var next pipelinetest.Sink
	p, err := newProcessor(f.Settings, config{Keys: []string{"http.request.method"}}, &next)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Consume(t.Context(), pipelinetest.Batch(t, otlpdata.Meta{}, 7)); err != nil {
		t.Fatal(err)
	}
	if got := f.Samples(t, "redact_values_total")[""]; got != 7 || next.Spans() != 7 {
		t.Errorf("%v values counted, %d spans passed on, want 7", got, next.Spans())
	}
}

func TestConfig(t *testing.T) {
	c := defaults()
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "must not be empty") {
		t.Errorf("without keys: %v", err)
	}
	if f := Factory(); f.Kind() != pipeline.KindProcessor {
		t.Errorf("kind %s", f.Kind())
	}
}
