package storetest

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// endingContext is canceled by a number of calls of Err.
type endingContext struct {
	context.Context
	cancel context.CancelFunc
	left   int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// checkLongValues checks that a query whose context ends while a regular expression examines a long
// value returns the error of the context or the correct result.
func checkLongValues(s *suite) {
	r := newRequest("x")
	for id := range uint64(2) {
		events := r.span(1+id, 1, "a", base+id).Events()
		for n := range 3 {
			text := strings.Repeat("a", 20<<10)
			if id == 1 && n == 2 {
				text += "cx"
			}
			events.AppendEmpty().Attributes().PutStr("k", text)
		}
	}
	s.send("", r.traces)
	like := tracestore.Cond{
		Field: tracestore.Field{Place: tracestore.EventAttribute, Key: "k"}, Op: tracestore.Like,
		Value: tracestore.Pattern(regexp.MustCompile("a[bc]x")),
	}
	for _, where := range []tracestore.Expr{
		like, tracestore.Not{Expr: like}, tracestore.Or{like, property(tracestore.RootName, "b")},
	} {
		set := storequery.Select{Where: where}
		want := findSet(s.sent.fullTraces(s, ""), tracestore.Query{}, set)
		for n, ended := 0, true; ended && n < 1<<12; n = 2*n + 1 {
			ended = s.findUntil(n, set, want)
		}
	}
}

// findUntil searches with a context that ends when it has been checked a number of times. It
// reports whether the context ended.
func (s *suite) findUntil(checks int, set storequery.SpanSet, want []tracestore.Result) (ended bool) {
	s.Helper()
	inner, cancel := context.WithCancel(s.ctx)
	defer cancel()
	ctx := &endingContext{inner, cancel, checks}
	res, err := s.plan(ctx, s.store, tracestore.Query{}, set, tracestore.WantIDs)
	var got []tracestore.Result
	if err == nil {
		for r, e := range res.All {
			if err = e; err == nil {
				got = append(got, r)
			}
		}
	}
	what := describeSet(tracestore.Query{}, set)
	switch {
	case err != nil && !errors.Is(err, context.Canceled):
		s.Errorf("Find(%s): error %v, want context.Canceled", what, err)
	case err == nil && res.Outcome().Complete():
		s.sameResults(what, got, want)
	}
	return inner.Err() != nil
}
