package tracestore

import "context"

// FindSet returns the traces of which a span is chosen by set, fits q.Where and starts within the window of q. Order, limit, cursor, budget
// and what is returned are as in [Reader.Find], where the spans that match are those. It asks the store for what the store can find by
// itself, reads the traces that may fit, and goes on until the limit is reached.
func FindSet(ctx context.Context, r Reader, q Query, set SpanSet, want Want) (*Results, error) {
	if s, ok := set.(Select); ok {
		q.Where = And{q.Where, s.Where}
	}
	return r.Find(ctx, q, want)
}
