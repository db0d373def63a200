package storequery

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
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
