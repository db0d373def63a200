package core

import (
	"math"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// LooksLikeNumber reports whether a text may be a number of an attribute. Stores list and count
// values as texts.
func LooksLikeNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// HasNumber returns the condition that a field has a number.
func HasNumber(f tracestore.Field) tracestore.Expr {
	return tracestore.Cond{Field: f, Op: tracestore.Ge, Value: tracestore.Number(math.Inf(-1))}
}

// HasNumbers reports whether spans in a window have a number in a field. It examines at most the
// given number of spans.
func (s *Slot) HasNumbers(f tracestore.Field, w Window, spans int) (bool, error) {
	results, err := s.Store().Find(s.ctx, tracestore.Query{
		Tenant: s.Tenant(), From: w.From, To: w.To, Limit: 1, Budget: tracestore.Budget{Spans: spans}, Where: HasNumber(f),
	}, tracestore.WantIDs)
	if err != nil {
		return false, err
	}
	for _, err := range results.All {
		return err == nil, err
	}
	return false, nil
}
