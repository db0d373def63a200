package memory

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// read returns the pieces of a trace. It stops at the first error.
func read(ctx context.Context, e *exporter, id otlpdata.TraceID, each func()) (out []*otlpdata.Batch, _ error) {
	for tr, err := range e.Traces(ctx, "", []tracestore.TraceRef{{ID: id}}) {
		if err != nil {
			return out, err
		}
		out = append(out, tr.Spans)
		each()
	}
	return out, nil
}

// TestReadServices checks that a trace has the same counts by service as the stored batch.
func TestReadServices(t *testing.T) {
	e, _ := open(t, 0)
	td := ordinary(3, 1)
	td.ResourceSpans().At(1).ScopeSpans().At(0).Spans().At(0).SetParentSpanID([8]byte{1})
	td.ResourceSpans().At(1).ScopeSpans().At(0).Spans().At(0).Attributes().PutInt(otlpdata.FlagsAttribute, int64(otlpdata.FlagDebug))
	in := batch(t, "", td)
	consume(t, e, in)
	consume(t, e, batch(t, "", ordinary(3, 1))) // one span differs, the others are duplicates
	pieces, err := read(t.Context(), e, otlpdata.TraceID{0: 3, 15: 1}, func() {})
	if err != nil || len(pieces) != 1 {
		t.Fatalf("%d pieces, %v", len(pieces), err)
	}
	got := pieces[0]
	want := append([]otlpdata.ServiceCount(nil), in.Services()...)
	want[1].Add(true, false)
	if want[1].Debug.Spans != 1 {
		t.Fatalf("%+v", want)
	}
	if got.Len() != in.Len()+1 || !reflect.DeepEqual(got.Services(), want) {
		t.Errorf("%d spans of %v, want %v", got.Len(), got.Services(), want)
	}
	if decoded, err := got.Traces(); err != nil || decoded.SpanCount() != got.Len() {
		t.Errorf("%d spans decoded, %v", decoded.SpanCount(), err)
	}
}

// TestReadOversizedSpan checks that a span beyond the limits of receivers, as a processor may
// create it, can be read.
func TestReadOversizedSpan(t *testing.T) {
	e, _ := open(t, 0)
	td := ptrace.NewTraces()
	s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetTraceID([16]byte{1})
	events := otlpdata.DefaultLimits().Items + 1
	s.Events().EnsureCapacity(events)
	for range events {
		s.Events().AppendEmpty()
	}
	consume(t, e, otlpdata.FromTraces(td, otlpdata.Meta{}))
	if pieces, err := read(t.Context(), e, otlpdata.TraceID{1}, func() {}); err != nil || len(pieces) != 1 {
		t.Errorf("%d pieces, %v", len(pieces), err)
	}
}

// TestReadLargeTrace checks that a large trace is returned in pieces, that cancellation stops it,
// and that it may be evicted meanwhile.
func TestReadLargeTrace(t *testing.T) {
	e, _ := open(t, 0)
	const requests = 5
	for i := range requests {
		td := ordinary(i, 1)
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				s.SetTraceID([16]byte{9})
				s.Attributes().PutStr("large", strings.Repeat("x", pieceBytes/spansPerTrace))
			}
		}
		consume(t, e, batch(t, "", td))
	}
	ctx, cancel := context.WithCancel(t.Context())
	pieces, err := read(ctx, e, otlpdata.TraceID{9}, cancel)
	if !errors.Is(err, context.Canceled) || len(pieces) != 1 {
		t.Errorf("%d pieces and error %v after cancellation, want one piece and context.Canceled", len(pieces), err)
	}
	spans := 0
	pieces, err = read(t.Context(), e, otlpdata.TraceID{9}, func() {
		e.maxBytes = 0
		dropAll(t, e)
	})
	for _, p := range pieces {
		spans += p.Len()
		if p.Size() > pieceBytes*5/4 {
			t.Errorf("piece of %d bytes", p.Size())
		}
	}
	if err != nil || len(pieces) < requests-1 || spans != requests*spansPerTrace {
		t.Errorf("%d spans in %d pieces, %v", spans, len(pieces), err)
	}
}

// TestFindTraceSpansBudget checks that a search reads no more of a long trace than the budget
// permits.
func TestFindTraceSpansBudget(t *testing.T) {
	e, _ := open(t, 0)
	const spans = 20
	td := ptrace.NewTraces()
	all := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range spans {
		s := all.AppendEmpty()
		s.SetTraceID([16]byte{1})
		s.SetSpanID([8]byte{1, byte(i)})
		s.Attributes().PutStr("k", strings.Repeat(string(rune('a'+i)), pieceBytes/4))
	}
	consume(t, e, batch(t, "", td))
	for limit, want := range map[int][2]int{0: {spans, spans}, spans: {spans, spans}, 5: {6, spans - 1}} {
		res, err := e.Find(t.Context(), tracestore.Query{Budget: tracestore.Budget{TraceSpans: limit}}, tracestore.WantFull)
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range res.All {
			if err != nil || r.Spans.Len() < want[0] || r.Spans.Len() > want[1] {
				t.Errorf("limit %d: %d spans, error %v", limit, r.Spans.Len(), err)
			}
		}
	}
}
