package disk

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// numbers generates spans with consecutive numbers, seven per trace, and records which of them were
// acknowledged. It is safe for concurrent use.
type numbers struct {
	mu    sync.Mutex
	acked []bool // by number
}

func newNumbers() *numbers { return &numbers{} }

const spansPerTrace = 7

// next returns a request with count new spans.
func (n *numbers) next(count int) *otlpdata.Batch {
	n.mu.Lock()
	first := len(n.acked)
	n.acked = append(n.acked, make([]bool, count)...)
	n.mu.Unlock()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", []string{"cart", "shop", "db"}[first%3])
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for i := first; i < first+count; i++ {
		s := spans.AppendEmpty()
		s.SetName([]string{"read", "write"}[i%2])
		s.SetTraceID(pcommon.TraceID(binary.BigEndian.AppendUint64(make([]byte, 8), uint64(i/spansPerTrace+1))))
		s.SetSpanID(pcommon.SpanID(binary.BigEndian.AppendUint64(nil, uint64(i+1))))
		s.SetStartTimestamp(pcommon.Timestamp(time.Date(2026, 11, 21, 12, 0, 0, i*1000, time.UTC).UnixNano()))
		s.SetEndTimestamp(s.StartTimestamp() + 500)
		s.Attributes().PutStr("order", time.Duration(i*7919).String())
		s.Attributes().PutInt("number", int64(i))
	}
	return batchOf(td)
}

// batchOf encodes a request as a batch.
func batchOf(td ptrace.Traces) *otlpdata.Batch {
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		panic(err)
	}
	b, err := otlpdata.FromOTLP(enc, otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		panic(err)
	}
	return b
}

// ack records that the spans of a request were acknowledged.
func (n *numbers) ack(b *otlpdata.Batch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	eachNumber(b, func(i int) { n.acked[i] = true })
}

func eachNumber(b *otlpdata.Batch, visit func(i int)) {
	err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
		visit(int(binary.BigEndian.Uint64(s.SpanID[:])) - 1)
		return nil
	})
	if err != nil {
		panic(err)
	}
}

// send sends count spans and fails the test if they are not acknowledged.
func (n *numbers) send(tb testing.TB, e *exporter, count int) {
	tb.Helper()
	b := n.next(count)
	if err := e.Consume(tb.Context(), b); err != nil {
		tb.Fatalf("Consume: %v", err)
	}
	n.ack(b)
}

// check reads all spans and returns their number. It checks that acknowledged spans are found, that
// no span is found twice, and that each has its content and was sent.
func (n *numbers) check(tb testing.TB, e *exporter) int {
	tb.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	have := make([]int, len(n.acked))
	found := 0
	results, err := e.Find(tb.Context(), tracestore.Query{}, tracestore.WantFull)
	if err != nil {
		tb.Fatalf("Find: %v", err)
	}
	for r, err := range results.All {
		if err != nil {
			tb.Fatalf("Find: %v", err)
		}
		err := tracestore.WalkSpans(r.Spans, func(s tracestore.Span) error {
			i := int(binary.BigEndian.Uint64(s.SpanID[:])) - 1
			if i < 0 || i >= len(have) {
				tb.Errorf("span %d was never sent", i)
				return nil
			}
			have[i]++
			found++
			if v, ok := otlpdata.Get(s.Attributes, "number"); !ok || v.Int() != int64(i) || len(s.Attributes) != 2 {
				tb.Errorf("span %d has unexpected attributes %v", i, s.Attributes)
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	for i, acked := range n.acked {
		if acked && have[i] == 0 {
			tb.Errorf("span %d was acknowledged but is lost", i)
		}
		if have[i] > 1 {
			tb.Errorf("span %d was found %d times", i, have[i])
		}
	}
	return found
}

func everything() tracestore.Query { return tracestore.Query{} }

// refOf returns a reference to the trace of a span.
func refOf(number int) []tracestore.TraceRef {
	return []tracestore.TraceRef{{ID: otlpdata.TraceID(binary.BigEndian.AppendUint64(make([]byte, 8), uint64(number/spansPerTrace+1)))}}
}

// emptySpans returns requests with spans that have no data, which are larger in the log than in the
// request. Each request has its own service and therefore its own shape.
func emptySpans(tb testing.TB, service string, count, requests int) (out []*otlpdata.Batch) {
	tb.Helper()
	for i := range requests {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", service+string(rune('a'+i)))
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		spans.EnsureCapacity(count)
		for range count {
			spans.AppendEmpty()
		}
		out = append(out, batchOf(td))
	}
	return out
}
