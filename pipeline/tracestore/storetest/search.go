package storetest

import (
	"context"
	"errors"
	"math"
	"regexp"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// at returns the time of a start. Its range is larger than the range of time.Unix(0, ns).
func at(ns uint64) time.Time { return time.Unix(int64(ns/1e9), int64(ns%1e9)) }

func attribute(key, text string) tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: tracestore.AnyAttribute, Key: key}, Value: tracestore.Text(text)}
}

func property(p tracestore.Place, text string) tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: p}, Value: tracestore.Text(text)}
}

// sendSeries sends n traces with one span each, not in the order of time and with many equal
// starts. Every third has third=yes.
func (s *suite) sendSeries(n int) {
	s.Helper()
	for i := range n {
		k := uint64(i*37%n + 1)
		r := newRequest("series")
		sp := r.span(k, 1, "op", base+k/3)
		if k%3 == 0 {
			sp.Attributes().PutStr("third", "yes")
		}
		s.send("", r.traces)
	}
}

func checkOrder(s *suite) {
	s.sendSeries(50)
	for _, limit := range []int{0, -1, 1, 2, 5, 49, 50, 51, 1000} {
		for _, where := range []tracestore.Expr{nil, property(tracestore.Service, "series"), attribute("third", "yes"),
			tracestore.Not{Expr: attribute("third", "yes")}, property(tracestore.Service, "unknown")} {
			s.checkFind(tracestore.Query{Where: where, Limit: limit}, tracestore.WantIDs)
		}
	}
}

func checkOneSpan(s *suite) {
	r := newRequest("one")
	a := r.span(1, 1, "a", base)
	a.Attributes().PutStr("x", "1")
	b := r.span(1, 2, "b", base)
	b.Attributes().PutStr("y", "1")
	s.send("", r.traces)
	for _, c := range []struct {
		where tracestore.Expr
		want  int
	}{
		{tracestore.And{attribute("x", "1"), attribute("y", "1")}, 0},
		{tracestore.And{attribute("x", "1"), property(tracestore.Name, "b")}, 0},
		{tracestore.And{attribute("x", "1"), property(tracestore.Name, "a"), property(tracestore.Service, "one")}, 1},
		{tracestore.Or{attribute("x", "2"), attribute("y", "1")}, 1},
		{tracestore.Or{}, 0},
		{tracestore.And{}, 1},
		{tracestore.And{tracestore.Not{Expr: attribute("x", "1")}, tracestore.Not{Expr: attribute("y", "1")}}, 0},
	} {
		if got := s.checkFind(tracestore.Query{Where: c.where}, tracestore.WantIDs); len(got) != c.want {
			s.Errorf("Find(%s): %d traces, want %d", describe(tracestore.Query{Where: c.where}), len(got), c.want)
		}
	}
}

func checkWindows(s *suite) {
	r := newRequest("window")
	for i := range uint64(10) {
		r.span(i+1, 1, "op", base+i*10)
		r.span(i+1, 2, "op", base+i*10+500) // any span can match
	}
	s.send("", r.traces)
	for _, from := range []uint64{0, base, base + 1, base + 50, base + 500, base + 590, base + 591} {
		for _, to := range []uint64{0, base - 1, base, base + 49, base + 50, base + 500, base + 1000} {
			q := tracestore.Query{}
			if from != 0 {
				q.From = at(from)
			}
			if to != 0 {
				q.To = at(to)
			}
			s.checkFind(q, tracestore.WantIDs)
			q.Where = property(tracestore.Service, "window")
			s.checkFind(q, tracestore.WantFull)
		}
	}
}

func checkExtremeTimes(s *suite) {
	for i, start := range []uint64{0, 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64 - 1, math.MaxUint64} {
		r := newRequest("extreme")
		r.span(uint64(i), 1, "op", start).SetEndTimestamp(pcommon.Timestamp(math.MaxUint64 - start))
		r.span(uint64(i), 2, "op", start).SetEndTimestamp(0)
		s.send("", r.traces)
	}
	if got := s.checkFind(tracestore.Query{}, tracestore.WantSummaries); len(got) != 6 {
		s.Errorf("%d traces, want 6", len(got))
	}
	s.checkFind(tracestore.Query{}, tracestore.WantFull)
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	times := []time.Time{{}, year(1900), at(0), at(1), at(math.MaxInt64), at(math.MaxInt64 + 1), at(math.MaxUint64), year(9999)}
	for _, from := range times {
		for _, to := range times {
			s.checkFind(tracestore.Query{From: from, To: to}, tracestore.WantIDs)
		}
	}
	s.comparePages(tracestore.Query{}, 1)
}

func checkPages(s *suite) {
	s.sendSeries(45)
	for _, size := range []int{1, 2, 7, 45, 100} {
		s.comparePages(tracestore.Query{}, size)
		s.comparePages(tracestore.Query{Where: attribute("third", "yes")}, size)
		s.comparePages(tracestore.Query{From: at(base + 3), To: at(base + 9)}, size)
	}
}

func checkPagesOfWideTraces(s *suite) {
	// Each trace matches at several times, so that it has spans on both sides of every cursor.
	for round := range uint64(4) {
		r := newRequest("wide")
		for trace := range uint64(9) {
			r.span(trace, round, "op", base+round*100+(trace*(round+3))%9)
		}
		s.send("", r.traces)
	}
	for _, size := range []int{1, 2, 7} {
		s.comparePages(tracestore.Query{}, size)
		s.comparePages(tracestore.Query{Where: property(tracestore.Service, "wide"), To: at(base + 205)}, size)
	}
}

func checkBudget(s *suite) {
	s.sendSeries(60)
	q := tracestore.Query{Where: tracestore.Cond{Field: tracestore.Field{Place: tracestore.AnyAttribute, Key: "third"},
		Op: tracestore.Like, Value: tracestore.Pattern(regexp.MustCompile("^y"))}}
	want := s.sent.find(q)
	for _, spans := range []int{1, 7, 1000} {
		q.Budget.Spans = spans
		s.compareBudgetPages(q, want, func(q tracestore.Query) ([]tracestore.Result, tracestore.Outcome) {
			return s.find(q, tracestore.WantIDs)
		})
	}
}

// compareBudgetPages continues a query each time its budget is exhausted, and compares all results
// with want.
func (s *suite) compareBudgetPages(
	q tracestore.Query, want []tracestore.Result, find func(tracestore.Query) ([]tracestore.Result, tracestore.Outcome),
) {
	s.Helper()
	var all []tracestore.Result
	for steps := 0; ; steps++ {
		got, outcome := find(q)
		all = append(all, got...)
		if outcome.Complete() && !outcome.Next.Set {
			break
		}
		if !outcome.Complete() && (!outcome.Has(tracestore.ReasonBudget) || outcome.Text() == "") {
			s.Errorf("Find(%s): outcome %+v, want ReasonBudget", describe(q), outcome)
		}
		if !outcome.Next.Set || steps > 1000 {
			s.Fatalf("Find(%s): incomplete after %d pages without a cursor for the next page", describe(q), steps)
		}
		q.After = outcome.Next
	}
	s.sameResults(describe(q), all, want)
}

func checkWants(s *suite) {
	for i := range uint64(3) {
		r := newRequest([]string{"front", "cart", "db"}[i])
		for trace := range uint64(4) {
			sp := r.span(trace+1, i+1, "op", base+trace*100+i)
			sp.SetParentSpanID(pcommon.SpanID(spanID(i)))
			if i == 2 && trace%2 == 0 {
				sp.Status().SetCode(ptrace.StatusCodeError)
			}
		}
		s.send("", r.traces)
	}
	orphans := newRequest("orphans")
	orphans.span(9, 5, "late", base+10).SetParentSpanID(pcommon.SpanID(spanID(4)))
	orphans.span(9, 6, "early", base+5).SetParentSpanID(pcommon.SpanID(spanID(3)))
	orphans.span(8, 8, "own parent", base).SetParentSpanID(pcommon.SpanID(spanID(8)))
	s.send("", orphans.traces)
	for _, want := range []tracestore.Want{tracestore.WantIDs, tracestore.WantSummaries, tracestore.WantFull} {
		s.checkFind(tracestore.Query{}, want)
		s.checkFind(tracestore.Query{Where: property(tracestore.Status, "error")}, want)
		s.checkFind(tracestore.Query{Where: property(tracestore.Service, "db"), Limit: 2}, want)
	}
}

// drain iterates over results, and returns their number and the error.
func drain(res *tracestore.Results, each func()) (n int, err error) {
	for _, err := range res.All {
		if err != nil {
			return n, err
		}
		n++
		each()
	}
	return n, nil
}

func checkCancel(s *suite) {
	const traces = 300
	s.sendSeries(traces)
	ctx, cancel := context.WithCancel(s.ctx)
	res, err := s.store.Find(ctx, tracestore.Query{}, tracestore.WantFull)
	if err != nil {
		s.Fatalf("Find: %v", err)
	}
	n, err := drain(res, cancel)
	if n < traces && err == nil && res.Outcome().Complete() {
		s.Errorf("%d of %d results after cancellation, but the outcome is complete", n, traces)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		s.Errorf("Find: error %v, want context.Canceled", err)
	}
	res, err = s.store.Find(ctx, tracestore.Query{}, tracestore.WantIDs)
	if err == nil {
		_, err = drain(res, func() {})
	}
	if !errors.Is(err, context.Canceled) {
		s.Errorf("Find with a canceled context: error %v, want context.Canceled", err)
	}
	err = nil
	for _, e := range s.store.Traces(ctx, "", []tracestore.TraceRef{{ID: traceID(1)}}) {
		err = e
	}
	if !errors.Is(err, context.Canceled) {
		s.Errorf("Traces with a canceled context: error %v, want context.Canceled", err)
	}
}

func checkEarlyStop(s *suite) {
	s.sendSeries(60)
	var refs []tracestore.TraceRef
	for range s.store.Traces(s.ctx, "", []tracestore.TraceRef{{ID: traceID(1)}, {ID: traceID(2)}}) {
		break
	}
	res, err := s.store.Find(s.ctx, tracestore.Query{}, tracestore.WantFull)
	if err != nil {
		s.Fatalf("Find: %v", err)
	}
	for r, err := range res.All {
		if err != nil {
			s.Fatalf("Find: %v", err)
		}
		refs = append(refs, tracestore.TraceRef{ID: r.ID})
		more := newRequest("written while reading")
		more.span(1000+uint64(len(refs)), 1, "op", base)
		s.send("", more.traces)
		if len(refs) == 10 {
			break
		}
	}
	if o := res.Outcome(); !o.Has(tracestore.ReasonUnread) {
		s.Errorf("the caller stopped after %d results, but the outcome is %+v", len(refs), o)
	}
	for tr, err := range s.store.Traces(s.ctx, "", refs) {
		if err != nil {
			s.Fatalf("Traces: %v", err)
		}
		more := newRequest("written while reading")
		more.span(2000+uint64(tr.Spans.Len()), 1, "op", base)
		s.send("", more.traces)
	}
	s.checkFind(tracestore.Query{}, tracestore.WantFull)
}
