package storequery

import (
	"context"
	"math"
	"math/bits"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Constants for sampling: if the budget does not suffice for all traces, only parts of the window
// are examined.
const (
	// sampledParts is the approximate number of parts for which the budget suffices. More parts
	// describe the window better; with fewer parts, fewer spans are decoded unnecessarily.
	sampledParts = 128
	minParts     = 256
	maxParts     = 1 << 20
	// After 1/firstShare of the budget, the search decides whether the rest suffices.
	firstShare = 8
)

// run counts everything, or a sample.
func (s *setAggregation) run(ctx context.Context) error {
	if id, ok := traceID(s.matcher.set, s.query.Where); ok {
		spans, err := s.spansOf(ctx, tracestore.TraceRef{ID: id})
		if err != nil || spans == nil {
			return err
		}
		return s.examine(ctx, part{s.window.from, s.window.to}, id, spans)
	}
	if done, err := s.countSummaries(ctx); done || err != nil {
		return err
	}
	all, budget := part{s.window.from, s.window.to}, s.query.Budget.Spans
	first := budget / firstShare
	if budget > 0 {
		first = max(first, 1)
	}
	if budget > 0 {
		s.known = make(map[otlpdata.TraceID]struct{})
	}
	rest, cut, err := s.visit(ctx, all, first)
	if err != nil || !cut {
		return err
	}
	expected := float64(s.spent()) / s.share
	if expected <= float64(budget) && !s.late() {
		if _, cut, err = s.visit(ctx, rest, 2*budget); err != nil || !cut {
			return err
		}
		expected = 2 * float64(budget)
	}
	if s.late() {
		s.stopped = reasonLate
		return nil
	}
	_ = s.memory.Grow(-knownMemory * int64(len(s.known))) // cannot fail
	s.known = nil
	if err := s.reset(); err != nil {
		return err
	}
	if done, err := s.countRare(ctx); done || err != nil {
		return err
	}
	return s.countSample(ctx, expected)
}

// countRare counts all matching traces if one of their necessary conditions is rare; see narrow.
func (s *setAggregation) countRare(ctx context.Context) (done bool, err error) {
	if _, one := s.matcher.set.(Select); one {
		return false, nil
	}
	for _, e := range necessaryConditions(s.matcher.set) {
		refs, ok := s.tracesWith(ctx, e, minNarrowTraces)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if !ok {
			continue
		}
		before := s.examined
		for i, ref := range refs {
			if s.examined-before >= s.query.Budget.Spans || s.late() {
				return false, s.reset()
			}
			s.share = float64(i) / float64(len(refs))
			spans, err := s.spansOf(ctx, ref)
			if err == nil && spans != nil {
				err = s.examine(ctx, part{s.window.from, s.window.to}, ref.ID, spans)
			}
			if err != nil {
				return false, err
			}
		}
		s.share = 1
		return true, nil
	}
	return false, nil
}

// countSample examines parts of the window until the budget or the time is exhausted. expected is
// the number of spans to examine for the whole window.
func (s *setAggregation) countSample(ctx context.Context, expected float64) error {
	budget := s.query.Budget.Spans
	length := s.window.to - s.window.from
	n := uint64(min(max(sampledParts*expected/float64(budget), minParts), maxParts))
	level := min(bits.Len64(n-1), max(bits.Len64(length)-1, 0)) // no part is empty
	spent := s.spent()
	s.sampling, s.share = true, math.Ldexp(1, -level)
	if s.bySummaries {
		s.inner.OfTrace = nil // the store's preparation for it would take longer than reading the traces of a part
	}
	for i := range uint64(1) << level {
		used := s.spent() - spent
		if mean := used / max(int(i), 1); i > 0 && (used+mean > budget || s.late()) {
			return nil
		}
		before := s.counter.spans
		_, cut, err := s.visit(ctx, partAt(s.window, scramble(i, level), level), budget)
		if err != nil {
			return err
		}
		s.parts.add(s.counter.spans - before)
		s.share = math.Ldexp(float64(i+1), -level)
		if cut && s.late() {
			s.stopped = reasonLate
			return nil
		}
		if cut {
			s.stopped = tracestore.Because(tracestore.ReasonBudget,
				"of some times only the newest spans were counted; narrow the search or the time range")
			return nil
		}
	}
	return nil
}

// partAt returns part number i of 1<<level parts of a window.
func partAt(w window, i uint64, level int) part {
	bound := func(i uint64) uint64 {
		high, low := bits.Mul64(w.to-w.from, i)
		if level == 0 {
			return w.from + low
		}
		return w.from + (high<<(64-level) | low>>level)
	}
	p := part{bound(i), bound(i + 1)}
	if i+1 < 1<<level {
		p.to--
	}
	return p
}

// scramble returns a permutation of the numbers below 1<<level. The sequence scramble(0),
// scramble(1), ... is spread evenly over the range: its first 1<<k numbers have one number in each
// of 1<<k equal parts of the range, at a pseudorandom position. So spans at regular intervals are
// sampled evenly, too.
func scramble(i uint64, level int) (out uint64) {
	for bit := range level {
		const golden = 0x9e3779b97f4a7c15
		h := (out + 1<<bit) * golden // differs for each prefix
		h = (h ^ h>>32) * golden
		out = out<<1 | (i>>bit^h>>63)&1
	}
	return out
}

// partSpread describes how the counted spans are spread over the examined parts of the window.
type partSpread struct{ parts, sum, squares float64 }

func (p *partSpread) add(spans uint64) {
	n := float64(spans)
	p.parts++
	p.sum += n
	p.squares += n * n
}

// With fewer than fewParts parts, their differences say little about other parts.
const fewParts = 8

// relativeError returns the relative standard error of the number of spans / share, at most 1.
func (p *partSpread) relativeError(share float64) float64 {
	switch {
	case share >= 1:
		return 0
	case p.sum == 0:
		return 1
	}
	squares := p.squares
	if p.parts >= fewParts {
		squares = max(p.squares-p.sum*p.sum/p.parts, 0) * p.parts / (p.parts - 1)
	}
	return min(math.Sqrt((1-share)*squares)/p.sum, 1)
}
