package scantest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// CutTraces returns requests of traces with the given number of spans each. The parent of each span
// is an earlier span of another service, in another request.
func CutTraces(tb testing.TB, traces, spans int, start time.Time) []*otlpdata.Batch {
	tb.Helper()
	const services = 3
	var out []*otlpdata.Batch
	for service := range services {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", fmt.Sprint("service ", service))
		list := rs.ScopeSpans().AppendEmpty().Spans()
		for id := range traces * spans {
			n := id % spans
			if n%services != service {
				continue
			}
			s := list.AppendEmpty()
			s.SetTraceID(pcommon.TraceID{byte(id / spans), 1})
			s.SetSpanID(pcommon.SpanID{byte(n), byte(n >> 8), 1})
			if n > 0 {
				parent := (n - 1) / 2
				s.SetParentSpanID(pcommon.SpanID{byte(parent), byte(parent >> 8), 1})
			}
			s.SetStartTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Duration(n) * 10 * time.Millisecond)))
			s.SetEndTimestamp(s.StartTimestamp() + 1000)
			s.Status().SetCode(ptrace.StatusCode(n % 3))
			s.Attributes().PutStr("peer.service", fmt.Sprint("peer ", n%5))
		}
		out = append(out, otlpdata.FromTraces(td, otlpdata.Meta{}))
	}
	return out
}

// Day is when the spans of CutTraces and SharedIDs start.
var Day = time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC)

// SharedIDs returns a request of spans in few traces that share few span ids. Some spans have a
// sampling threshold. No two spans start at the same time.
func SharedIDs(seed uint64, spans int) *otlpdata.Batch {
	rng := rand.New(rand.NewPCG(seed, 4))
	td := ptrace.NewTraces()
	for n := range spans {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", fmt.Sprint("service ", rng.IntN(4)))
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID(pcommon.TraceID{1, 9: 0xff, 15: byte(rng.IntN(5))})
		s.SetSpanID(pcommon.SpanID{byte(rng.IntN(10))})
		s.SetParentSpanID(pcommon.SpanID{byte(rng.IntN(10))})
		s.SetKind(ptrace.SpanKind(rng.IntN(6)))
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(Day.Add(time.Duration(rng.IntN(200_000))*time.Millisecond)) + pcommon.Timestamp(n))
		s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(rng.IntN(1000)))
		s.Status().SetCode(ptrace.StatusCode(rng.IntN(3)))
		if rng.IntN(3) == 0 {
			s.TraceState().FromRaw([]string{"ot=th:8", "a=b,ot=th:b333", fmt.Sprintf("ot=rv:f%013x;th:e666", n), "a=b", "ot=th:x"}[rng.IntN(5)])
		}
		if rng.IntN(3) > 0 {
			s.Attributes().PutStr("db.system", fmt.Sprint("base ", rng.IntN(3)))
		}
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

// Series returns a source with precise hints. Each span is a separate trace with its own order id.
// Blocks start a second apart. The spans of a block take a millisecond longer than the spans of the
// previous block.
func Series(tb testing.TB, blocks, spans int) *Synthetic {
	tb.Helper()
	s := NewSynthetic(1, 7)
	s.Tables[0].precise, s.Tables[0].intern.plain = true, true
	for b := range blocks {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "cart")
		ss := rs.ScopeSpans().AppendEmpty()
		for i := range spans {
			n := b*spans + i
			sp := ss.Spans().AppendEmpty()
			sp.SetTraceID(pcommon.TraceID{1, byte(n >> 16), byte(n >> 8), byte(n)})
			sp.SetStartTimestamp(pcommon.Timestamp(Start + uint64(b)*1e9 + uint64(i)))
			sp.SetEndTimestamp(sp.StartTimestamp() + pcommon.Timestamp(1+b)*1e6)
			sp.SetName(fmt.Sprint("operation ", i%10))
			sp.Attributes().PutStr("order", fmt.Sprint("order-", n))
			sp.Attributes().PutInt("size", int64(n%100))
		}
		var all []tracestore.Span
		Must(tracestore.WalkSpans(Encode(tb, td), func(sp tracestore.Span) error {
			all = append(all, cloneSpan(sp))
			return nil
		}))
		s.Tables[0].add("", all, spans)
	}
	return s
}

// Attribute returns a condition on any attribute.
func Attribute(op tracestore.Op, key string, value tracestore.Literal) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: tracestore.AnyAttribute, Key: key}, Op: op, Value: value}
}

// Property returns a condition on a property of spans.
func Property(p tracestore.Place, op tracestore.Op, value tracestore.Literal) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: p}, Op: op, Value: value}
}

// WideTrace returns one trace of n spans of two services, in pairs with the same start and id.
func WideTrace(tb testing.TB, n int) *otlpdata.Batch {
	tb.Helper()
	td := ptrace.NewTraces()
	var scopes []ptrace.ScopeSpans
	for i := range 2 {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", fmt.Sprint("service ", i))
		scopes = append(scopes, rs.ScopeSpans().AppendEmpty())
	}
	for i := range n {
		s := scopes[i%2].Spans().AppendEmpty()
		s.SetTraceID(pcommon.TraceID{1})
		pair := uint64(i/2) * 7919 % uint64(n)
		s.SetSpanID(pcommon.SpanID{byte(pair >> 16), byte(pair >> 8), byte(pair)})
		if i > 0 {
			s.SetParentSpanID(pcommon.SpanID{0xff})
		}
		s.SetName(fmt.Sprint("operation ", i%10))
		s.SetStartTimestamp(pcommon.Timestamp(Start + pair/3))
		s.Attributes().PutInt("number", int64(i))
	}
	return Encode(tb, td)
}
