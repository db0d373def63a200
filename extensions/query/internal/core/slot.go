package core

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Slot is an admitted query. It accounts for the memory of its response. A Slot is for one
// goroutine, except for the fields that RunningQueries reads.
type Slot struct {
	backend *Backend
	op      Operation
	leave   func() // the admission
	ctx     context.Context
	cancel  context.CancelFunc
	account *pipeline.Reservation // all memory of the query
	memory  *tracestore.Memory    // the part of it that the caller holds, as opposed to the store

	since   time.Time
	client  string
	text    atomic.Pointer[string]
	scanned atomic.Int64
}

// SlotMemory is the memory in bytes that each query reserves when it is admitted: for its
// goroutine, connection and response buffers. A query that does not fit is refused before it does
// any work.
const SlotMemory = 1 << 20

// Slots and memory that queries leave free for others, as divisors of the limits. So lists of names
// and single traces work even while searches and aggregations use all of the rest, and the first
// query of a client works even while another client has used up its share.
const (
	keptSlots       = 8 // left by queries that are not quick
	keptMemory      = 8 // left by queries that are not quick
	keptClientShare = 4 // left by further queries of a client
)

// Admit admits a query of kind op, which ends with ctx or after Limits.Timeout. The caller must
// call Release. If other queries have exhausted a limit or the share of the client, the error is an
// overload (see pipeline.Overloaded), which IsBusy recognizes.
func (b *Backend) Admit(ctx context.Context, op Operation) (*Slot, error) {
	keep, keepBytes := 0, int64(0)
	if !op.isQuick() {
		keep, keepBytes = b.opts.Limits.Queries/keptSlots, b.opts.Memory.Limit()/keptMemory
	}
	sharing := ctx
	if op.isQuick() {
		sharing = context.Background() // other users behind the proxy of a greedy client still get names and traces
	}
	leave, others, err := b.admission.Enter(sharing, keep)
	if err != nil {
		return nil, err
	}
	if others > 0 && !op.isQuick() {
		keepBytes = b.opts.Memory.Limit() / keptClientShare
	}
	account, err := b.opts.Memory.ReserveLeaving(SlotMemory, keepBytes)
	if err != nil {
		leave()
		return nil, err
	}
	s := &Slot{backend: b, op: op, leave: leave, account: account, since: b.opts.Now(), client: server.Client(ctx)}
	limited, cancel := context.WithTimeout(tracestore.WithAccount(ctx, account), b.opts.Limits.Timeout)
	s.ctx, s.cancel = tracestore.WithPatternLimit(limited, cancel, b.opts.Limits.PatternTime), cancel
	s.memory, _ = tracestore.Reserve(s.ctx, 0) // reserving nothing cannot fail
	b.addRunning(s)
	return s, nil
}

// Reserve reserves memory for work that is not a query. The caller must release it. The error is as
// in Admit.
func (b *Backend) Reserve(bytes int64) (*pipeline.Reservation, error) {
	return b.opts.Memory.Reserve(bytes)
}

// Release ends the query and frees its memory.
func (s *Slot) Release() {
	s.backend.removeRunning(s)
	s.cancel()
	s.account.Release()
	s.leave()
}

// Context returns the context of the query. It is canceled when the client disconnects, when the
// time limit is reached, and by Release.
func (s *Slot) Context() context.Context { return s.ctx }

// Tenant returns the tenant of the client.
func (s *Slot) Tenant() string { return server.Tenant(s.ctx) }

// Store returns the store that is queried.
func (s *Slot) Store() Store { return s.backend.opts.Store }

// Language returns the search language for the query.
func (s *Slot) Language() traceql.Language { return s.backend.Language(s.ctx) }

// Limits returns the configured limits.
func (s *Slot) Limits() Limits { return s.backend.opts.Limits }

// Budget returns the part of a store's work that Limits allows for one search.
func (s *Slot) Budget() tracestore.Budget {
	l := &s.backend.opts.Limits
	return tracestore.Budget{Spans: l.Scanned, TraceSpans: l.TraceSize}
}

// Held returns the number of bytes that the caller holds for the response.
func (s *Slot) Held() int64 { return s.memory.Held() }

// SetHeld changes the number of bytes that the caller holds for the response. The error is as in
// Admit.
func (s *Slot) SetHeld(bytes int64) error { return s.memory.Resize(bytes) }

// HoldMore reserves bytes in addition to the bytes that the caller holds. The error is as in Admit.
func (s *Slot) HoldMore(bytes int64) error { return s.memory.Grow(bytes) }

// adjustMemory is the approximate number of bytes that adjusting a span takes.
const adjustMemory = 160

// memoryOf returns the memory in bytes of spans and, unless their trace is truncated, of their
// adjustment.
func (s *Slot) memoryOf(bytes, spans int) int64 {
	if spans <= s.backend.opts.Limits.TraceSize {
		bytes += adjustMemory * spans
	}
	return int64(bytes)
}

// hold reserves additional memory for the spans of a trace and their adjustment.
func (s *Slot) hold(spans *otlpdata.Batch) error {
	return s.HoldMore(s.memoryOf(spans.Size(), spans.Len()))
}

// minConcurrentAggregations is the number of concurrent aggregations that always fit into the
// memory for all queries, however small it is.
const minConcurrentAggregations = 4

// HoldAggregation is like HoldMore, but reserves at most a fixed part of the memory for all
// queries. The bytes are an upper bound, so a small limit should not rule out aggregations.
func (s *Slot) HoldAggregation(bytes int64) error {
	return s.HoldMore(min(bytes, s.backend.opts.Memory.Limit()/minConcurrentAggregations))
}
