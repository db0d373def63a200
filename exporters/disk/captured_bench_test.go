//go:build unix

package disk

import (
	"encoding/binary"
	"iter"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/test/bench"
)

// BenchmarkSize reports the stored size of spans, including all parts of the segments, for three
// seeds of the data set and for the captured traces in test/e2e/query/testdata/real-traces.
// "captured/once" overstates the size because there are few captured spans and the fixed parts of a
// segment dominate. "captured/repeated" stores them repeatedly, each time a minute later and with
// new ids, up to 100 000 spans; it understates the size because repeated attribute values compress
// well.
func BenchmarkSize(b *testing.B) {
	start := newClock().now()
	seed := func(n uint64) iter.Seq[bench.Request] {
		return bench.New(n, start).Requests(benchSpans(), usualRequest)
	}
	for _, c := range []struct {
		name     string
		requests func(testing.TB) iter.Seq[bench.Request]
	}{
		{"seed/1", func(testing.TB) iter.Seq[bench.Request] { return seed(1) }},
		{"seed/2", func(testing.TB) iter.Seq[bench.Request] { return seed(2) }},
		{"seed/3", func(testing.TB) iter.Seq[bench.Request] { return seed(3) }},
		{"captured/once", func(tb testing.TB) iter.Seq[bench.Request] { return repeated(tb, 1) }},
		{"captured/repeated", func(tb testing.TB) iter.Seq[bench.Request] { return repeated(tb, bench.Spans(100_000)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorkload(b, c.requests(b))
			var sum cost
			for b.Loop() {
				sum.add(w.store(b))
			}
			sum.report(b, w)
			b.ReportMetric(float64(w.bytes)/float64(w.spans), "sent-B/span")
			b.ReportMetric(float64(w.spans), "spans")
		})
	}
}

// repeated repeats the captured requests, with new ids and times, until they have at least the
// given number of spans.
func repeated(tb testing.TB, spans int) iter.Seq[bench.Request] {
	tb.Helper()
	all, err := bench.Captured("../../test/e2e/query/testdata/real-traces")
	if err != nil {
		tb.Fatal(err)
	}
	return func(yield func(bench.Request) bool) {
		for round, done := 0, 0; done < spans; round++ {
			for _, td := range all {
				copied := ptrace.NewTraces()
				td.CopyTo(copied)
				relabel(copied, round)
				body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(copied)
				if err != nil {
					tb.Fatal(err)
				}
				done += td.SpanCount()
				if !yield(bench.Request{Spans: td.SpanCount(), Body: body}) {
					return
				}
			}
		}
	}
}

// relabel changes ids and times by the number of the round. References between spans stay intact.
func relabel(td ptrace.Traces, round int) {
	trace := func(id pcommon.TraceID) pcommon.TraceID { scramble(id[:8], round); return id }
	span := func(id pcommon.SpanID) pcommon.SpanID { scramble(id[:], round); return id }
	later := func(t pcommon.Timestamp) pcommon.Timestamp {
		return t + pcommon.Timestamp(round)*pcommon.Timestamp(time.Minute)
	}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				s.SetTraceID(trace(s.TraceID()))
				s.SetSpanID(span(s.SpanID()))
				s.SetStartTimestamp(later(s.StartTimestamp()))
				s.SetEndTimestamp(later(s.EndTimestamp()))
				if !s.ParentSpanID().IsEmpty() {
					s.SetParentSpanID(span(s.ParentSpanID()))
				}
				for _, e := range s.Events().All() {
					e.SetTimestamp(later(e.Timestamp()))
				}
				for _, l := range s.Links().All() {
					l.SetTraceID(trace(l.TraceID()))
					l.SetSpanID(span(l.SpanID()))
				}
			}
		}
	}
}

// scramble changes the eight bytes of an id. It is one-to-one within a round and preserves
// randomness.
func scramble(id []byte, round int) {
	binary.BigEndian.PutUint64(id, binary.BigEndian.Uint64(id)^uint64(round)*0x9e3779b97f4a7c15)
}
