package scantest

import (
	"context"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Spans of a Generator start within TimeSpan nanoseconds from Start.
const (
	Start    = uint64(1_700_000_000_000_000_000)
	TimeSpan = 400
)

// Generator makes random spans and queries, and records the spans.
type Generator struct {
	*rand.Rand
	Spans []tracestore.Span
}

func (w *Generator) text() string {
	return []string{"", "a", "b", "true", "7", "2.5", "cart", "AA==", "op-1", "op-2"}[w.IntN(10)]
}

// Key returns one of three attribute keys.
func (w *Generator) Key() string { return []string{"k", "l", "m"}[w.IntN(3)] }

func (w *Generator) attributes(m pcommon.Map) {
	for range w.IntN(4) {
		switch k := w.Key(); w.IntN(7) {
		case 0:
			m.PutBool(k, w.IntN(2) == 0)
		case 1:
			m.PutInt(k, int64(w.IntN(8)))
		case 2:
			m.PutDouble(k, 2.5)
		case 3:
			m.PutEmptySlice(k).AppendEmpty().SetStr(w.text())
		default:
			m.PutStr(k, w.text())
		}
	}
}

// Send stores requests of random spans in s.
func (w *Generator) Send(tb testing.TB, s interface {
	Consume(context.Context, *otlpdata.Batch) error
}, requests int) {
	tb.Helper()
	for range requests {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", w.text())
		w.attributes(rs.Resource().Attributes())
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName(w.text())
		for range w.IntN(30) {
			w.span(ss.Spans().AppendEmpty())
		}
		b := Encode(tb, td)
		Must(tracestore.WalkSpans(b, func(sp tracestore.Span) error {
			w.Spans = append(w.Spans, cloneSpan(sp))
			return nil
		}))
		Must(s.Consume(tb.Context(), b))
	}
}

// Encode returns a batch of the encoded traces.
func Encode(tb testing.TB, td ptrace.Traces) *otlpdata.Batch {
	tb.Helper()
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	Must(err)
	b, err := otlpdata.FromOTLP(enc, otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func (w *Generator) span(s ptrace.Span) {
	s.SetTraceID(pcommon.TraceID{0: byte(w.IntN(2)), 15: byte(w.IntN(40))})
	s.SetSpanID(pcommon.SpanID{7: byte(w.IntN(60))})
	s.SetParentSpanID(pcommon.SpanID{7: byte(w.IntN(60))})
	s.SetName(w.text())
	s.SetStartTimestamp(pcommon.Timestamp(Start + w.Uint64N(TimeSpan)))
	s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(w.IntN(9)))
	s.SetKind(ptrace.SpanKind(w.IntN(6)))
	s.Status().SetCode(ptrace.StatusCode(w.IntN(3)))
	s.Status().SetMessage(w.text())
	w.attributes(s.Attributes())
	for range w.IntN(3) {
		e := s.Events().AppendEmpty()
		e.SetName(w.text())
		w.attributes(e.Attributes())
	}
	if w.IntN(4) == 0 {
		w.attributes(s.Links().AppendEmpty().Attributes())
	}
}

func (w *Generator) cond() tracestore.Cond {
	c := tracestore.Cond{Op: tracestore.Op(w.IntN(int(tracestore.Exists) + 1)), Value: tracestore.Text(w.text())}
	if w.IntN(2) == 0 {
		c.Op = tracestore.Eq
	}
	c.Field = tracestore.Field{Place: tracestore.Place(w.IntN(int(tracestore.ParentID) + 1)), Key: w.Key()}
	switch {
	case c.Op == tracestore.Like:
		c.Value = tracestore.Pattern(regexp.MustCompile([]string{"a", "^$", "[0-9]$"}[w.IntN(3)]))
	case w.IntN(3) == 0 || c.Field.Place == tracestore.Duration:
		c.Value = tracestore.Number(float64(w.IntN(9)))
	case c.Field.Place == tracestore.ParentID:
		c.Value = tracestore.Text(otlpdata.SpanID{7: byte(w.IntN(60))}.String())
	}
	return c
}

// Expr returns a random expression of at most depth levels.
func (w *Generator) Expr(depth int) tracestore.Expr {
	if depth == 0 || w.IntN(4) == 0 {
		return w.cond()
	}
	var parts []tracestore.Expr
	for range 1 + w.IntN(3) {
		parts = append(parts, w.Expr(depth-1))
	}
	switch w.IntN(4) {
	case 0:
		return tracestore.Not{Expr: parts[0]}
	case 1:
		return tracestore.Or(parts)
	}
	return tracestore.And(parts)
}

// At returns the time of a Unix timestamp in nanoseconds.
func At(ns uint64) time.Time { return time.Unix(0, int64(ns)) }

// Query returns a random search.
func (w *Generator) Query() tracestore.Query {
	q := tracestore.Query{Where: w.Expr(3)}
	if w.IntN(2) == 0 {
		q.From = At(Start + w.Uint64N(TimeSpan))
	}
	if w.IntN(2) == 0 {
		q.To = At(Start + w.Uint64N(TimeSpan))
	}
	return q
}
