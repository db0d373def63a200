package tracestore

import (
	"context"
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync/atomic"
	"time"
)

// DefaultPatternTime is the default CPU time of the regular expressions of a query.
const DefaultPatternTime = 10 * time.Second

// ErrPatternTime is matched by the error of a query whose regular expressions took too long. It
// matches context.DeadlineExceeded, like the error of any other query that takes too long.
var ErrPatternTime = fmt.Errorf("regular expressions took too long: %w", context.DeadlineExceeded)

// patternContext is the context of a query with a limit on the time of its regular expressions.
type patternContext struct {
	context.Context
	end   context.CancelFunc
	limit time.Duration
	done  chan struct{} // of its own, so that derived contexts end with the error of this one
	spent atomic.Int64  // nanoseconds, estimated
	calls atomic.Int64
}

type patternKey struct{}

// WithPatternLimit returns a copy of ctx that limits the CPU time of regular expressions. When they
// have used it up, it calls end, which must cancel ctx, and the error of the context becomes
// ErrPatternTime. Components that query a store do this once for each query, when they admit it.
func WithPatternLimit(ctx context.Context, end context.CancelFunc, limit time.Duration) context.Context {
	p := &patternContext{Context: ctx, end: end, limit: limit, done: make(chan struct{})}
	context.AfterFunc(ctx, func() { close(p.done) })
	return p
}

// Done implements context.Context.
func (p *patternContext) Done() <-chan struct{} { return p.done }

// Err implements context.Context.
func (p *patternContext) Err() error {
	if p.spent.Load() > int64(p.limit) {
		return ErrPatternTime
	}
	return p.Context.Err()
}

// Value implements context.Context.
func (p *patternContext) Value(key any) any {
	if _, ok := key.(patternKey); ok {
		return p
	}
	return p.Context.Value(key)
}

func (p *patternContext) spend(d time.Duration) {
	if before := p.spent.Add(int64(d)) - int64(d); before <= int64(p.limit) && before+int64(d) > int64(p.limit) {
		p.end()
	}
}

// patternSample: one in patternSample matches is measured, because reading the clock can take as
// long as a match.
const patternSample = 16

// maxStepTime is the maximum CPU time that a step of a regular expression takes per byte. It bounds
// the measured time, which is longer if other goroutines run meanwhile.
const maxStepTime = 50 * time.Nanosecond

// patternCost measures the time of one regular expression. nil measures nothing.
type patternCost struct {
	query *patternContext
	steps int
}

// newPatternCost returns the measurement for an expression in the query of ctx, or nil if the time
// is not limited.
func newPatternCost(ctx context.Context, re *regexp.Regexp) *patternCost {
	query, ok := ctx.Value(patternKey{}).(*patternContext)
	if !ok || re == nil {
		return nil
	}
	const most = 1 << 13
	c := &patternCost{query: query, steps: most}
	if parsed, err := syntax.Parse(re.String(), syntax.Perl); err == nil {
		c.steps = PatternSteps(parsed, most)
	}
	return c
}

// measure calls match for a text of n bytes.
func (c *patternCost) measure(n int, match func() bool) bool {
	if c == nil {
		return match()
	}
	weight := time.Duration(1)
	if n <= likeStep {
		if c.query.calls.Add(1)%patternSample != 0 {
			return match()
		}
		weight = patternSample
	}
	start := time.Now()
	matched := match()
	c.query.spend(weight * min(time.Since(start), time.Duration(c.steps*(n+1))*maxStepTime))
	return matched
}
