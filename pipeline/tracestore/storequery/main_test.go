package storequery

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// batchOf returns a batch with one resource, one scope and one span, which change fills in.
func batchOf(tb testing.TB, change func(rs ptrace.ResourceSpans, ss ptrace.ScopeSpans, s ptrace.Span)) *otlpdata.Batch {
	tb.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	ss := rs.ScopeSpans().AppendEmpty()
	change(rs, ss, ss.Spans().AppendEmpty())
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

// equals returns a condition on a property.
func equals(place tracestore.Place, value string) tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: place}, Value: tracestore.Text(value)}
}
