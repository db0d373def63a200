package query

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// backend is what all APIs share: the stores, the bounds of what an answer may cost, and what is counted.
type backend struct {
	store   Store
	archive Archive // nil: there is none
	limits  limits
	memory  *pipeline.Budget // of traces in answers
	running atomic.Int64     // queries
	logger  *zap.Logger
	metrics *metrics
	now     func() time.Time
}

// limits bound what requests may cost. All but clockSkew are above 0.
type limits struct {
	timeout    time.Duration
	traces     int // in one answer
	traceSize  int // spans of one trace
	scanned    int // spans examined for one search
	aggregated int // spans examined to count spans by their values
	queries    int // at once
	clockSkew  time.Duration
}

var (
	errTraceNotFound = errors.New("trace not found")
	errNoArchive     = errors.New("archive span storage was not configured")
	// errBusy is matched by errors that say that other answers take all there is.
	errBusy = errors.New("too many queries at once")
)

// turn is a query that was let in. It ends with its client, with the time that it may take, or with done, which must be called.
type turn struct {
	context.Context
	cancel  context.CancelFunc
	backend *backend
	memory  *pipeline.Reservation
	held    int64 // bytes that memory accounts for
}

// admit lets a query in, unless there are too many: the error matches errBusy, and is an overload (see pipeline.Overloaded).
func (b *backend) admit(ctx context.Context) (*turn, error) {
	if n := b.running.Add(1); n > int64(b.limits.queries) {
		b.running.Add(-1)
		return nil, pipeline.Overloaded(fmt.Errorf("%w: max_concurrent_queries (%d) are being answered", errBusy, b.limits.queries), 0)
	}
	memory, err := b.memory.Reserve(0)
	if err != nil { // nothing always fits
		b.running.Add(-1)
		return nil, err
	}
	t := &turn{backend: b, memory: memory}
	t.Context, t.cancel = context.WithTimeout(ctx, b.limits.timeout)
	return t, nil
}

// done ends the query.
func (t *turn) done() {
	t.cancel()
	t.memory.Release()
	t.backend.running.Add(-1)
}

// hold accounts for what the query holds in memory of traces, in place of what it held before. The error is as in admit.
func (t *turn) hold(b *otlpdata.Batch) error {
	t.held = 0
	return t.holdAlso(b)
}

// holdAlso is hold, but beside what the query holds already.
func (t *turn) holdAlso(b *otlpdata.Batch) error {
	const perSpan = 160 // bytes of what it takes to adjust a trace, about
	return t.holdBytes(t.held + int64(b.Size()+perSpan*b.Len()))
}

// holdBytes accounts for so many bytes in place of those before.
func (t *turn) holdBytes(n int64) error {
	t.held = n
	if err := t.memory.Resize(n); err != nil {
		return pipeline.Overloaded(fmt.Errorf("%w: answers hold max_answer_memory (%d bytes)", errBusy, t.backend.memory.Limit()), 0)
	}
	return nil
}

// adjustment returns how traces are shown.
func (b *backend) adjustment(raw bool) adjust.Options {
	return adjust.Options{Raw: raw, MaxSpans: b.limits.traceSize, MaxClockSkew: b.limits.clockSkew}
}

// trace returns what is stored of a trace, from the archive when the store has nothing; nothing when it does not exist. It reads no more
// than it takes to know what is shown. The query holds it until it reads another one.
func (t *turn) trace(tenant string, ref tracestore.TraceRef) ([]*otlpdata.Batch, error) {
	pieces, err := t.read(t.backend.store, tenant, ref)
	if err == nil && len(pieces) == 0 && t.backend.archive != nil {
		pieces, err = t.read(t.backend.archive, tenant, ref)
	}
	return pieces, err
}

func (t *turn) read(from tracestore.Reader, tenant string, ref tracestore.TraceRef) (pieces []*otlpdata.Batch, err error) {
	spans := 0
	t.held = 0 // of a trace before
	for piece, err := range from.Traces(t, tenant, []tracestore.TraceRef{ref}) {
		if err != nil {
			return nil, err
		}
		if err := t.holdAlso(piece.Spans); err != nil {
			return nil, err
		}
		pieces = append(pieces, piece.Spans)
		if spans += piece.Spans.Len(); spans > t.backend.limits.traceSize {
			break
		}
	}
	return pieces, nil
}

// query returns what a search asks the store for.
func (b *backend) query(t *turn, s *search) tracestore.Query {
	return s.query(server.Tenant(t), &b.limits)
}

// results asks the store for what fits a query and, unless it is nil, a set.
func (t *turn) results(q tracestore.Query, set storequery.SpanSet, want tracestore.Want) (*tracestore.Results, error) {
	if set == nil {
		return t.backend.store.Find(t, q, want)
	}
	return storequery.Find(t, t.backend.store, q, set, want)
}

// find calls visit for each trace that a search finds, and returns how the search ended. Set may be nil.
func (t *turn) find(q tracestore.Query, set storequery.SpanSet, visit func(*otlpdata.Batch) error) (tracestore.Outcome, error) {
	return t.findNamed(q, set, func(_ otlpdata.TraceID, trace *otlpdata.Batch) error { return visit(trace) })
}

// findNamed is find for who needs ids.
func (t *turn) findNamed(q tracestore.Query, set storequery.SpanSet, visit func(otlpdata.TraceID, *otlpdata.Batch) error) (
	o tracestore.Outcome, err error,
) {
	results, err := t.results(q, set, tracestore.WantFull)
	if err != nil {
		return o, err
	}
	for res, err := range results.All {
		if err == nil {
			err = t.hold(res.Spans)
		}
		if err == nil {
			err = visit(res.ID, res.Spans)
		}
		if err != nil {
			return o, err
		}
	}
	return results.Outcome(), nil
}

// measure counts a question to the store, which returns the number of results. That there is no such trace, that the client went away, and
// that too much is asked at once, is no failure of the store.
func (b *backend) measure(op operation, ask func() (int, error)) error {
	start := b.now()
	n, err := ask()
	failed := err != nil
	for _, usual := range []error{errTraceNotFound, errUndelivered, errBusy, context.Canceled} {
		failed = failed && !errors.Is(err, usual)
	}
	b.metrics.observe(op, b.now().Sub(start), failed)
	if err == nil && op.hasResults() {
		b.metrics.responses.WithLabelValues(string(op)).Observe(float64(n))
	}
	return err
}
