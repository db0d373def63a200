package grpc

import (
	"context"
	"errors"
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// round is the response to one request of a search.
type round struct {
	search     *search
	candidates map[otlpdata.TraceID]*candidate
	count      int                   // traces
	held       int64                 // bytes of pieces in memory
	memory     *pipeline.Reservation // for pieces, of max_held_size
	account    *tracestore.Memory    // for pieces, of the memory of all queries
	incomplete tracestore.Reasons    // why the response is incomplete, according to the server
	// anyMatch reports whether a trace has a span that matches the remote query. oldest is then the
	// oldest start of the newest such spans: the response contains all newer traces.
	anyMatch bool
	oldest   uint64
}

// candidate is a trace that may be a result.
type candidate struct {
	id      otlpdata.TraceID
	pieces  []*otlpdata.Batch
	dropped bool   // pieces were dropped
	matched bool   // key is set
	key     uint64 // latest start of a span that matches the query
	remote  bool   // newest is set
	newest  uint64 // latest start of a span that matches the remote query
}

// errTooManyTraces ends the response of a server that sends more traces than requested.
var errTooManyTraces = errors.New("remote storage server sent more traces than requested (max_traces_per_question)")

// fetch sends the remote query and examines the response. The round holds its memory until the
// memory is released.
func (s *search) fetch(ctx context.Context) (*round, error) {
	memory, err := s.held.Reserve(0)
	if err != nil { // cannot happen
		return nil, err
	}
	account, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		memory.Release()
		return nil, err
	}
	r := &round{search: s, candidates: make(map[otlpdata.TraceID]*candidate), memory: memory, account: account}
	incomplete, err := s.reader.find(s.withReadMetadata(ctx, s.query.Tenant), s.remoteQuery, func(otlp []byte) error {
		return pieces(ctx, otlp, s.query.Tenant, r.add)
	})
	r.incomplete = tracestore.Because(tracestore.ReasonDamage, incomplete)
	if errors.Is(err, errTooManyTraces) {
		r.incomplete, err = tracestore.BecauseOf(err), nil
	}
	if err == nil {
		err = ctx.Err() // conditions may be wrong, see tracestore.WithContext
	}
	if err != nil {
		r.release()
		return nil, s.readError(ctx, err)
	}
	r.count = len(r.candidates)
	for _, c := range r.candidates {
		if c.remote && (!r.anyMatch || c.newest < r.oldest) {
			r.anyMatch, r.oldest = true, c.newest
		}
	}
	return r, nil
}

// add adds a piece of a trace.
func (r *round) add(id otlpdata.TraceID, b *otlpdata.Batch) error {
	c := r.candidates[id]
	if c == nil {
		if len(r.candidates) >= r.search.cfg.MaxTraces {
			return errTooManyTraces
		}
		c = &candidate{id: id}
		r.candidates[id] = c
	}
	if err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
		r.search.examine(c, s)
		return nil
	}); err != nil {
		return err
	}
	r.hold(c, b)
	return nil
}

// release gives back the memory of all pieces.
func (r *round) release() {
	r.memory.Release()
	r.account.Release()
}

// hold holds a piece in memory. If that exceeds max_held_size or the memory for all queries, it
// drops all pieces of the trace.
func (r *round) hold(c *candidate, b *otlpdata.Batch) {
	if r.search.want == tracestore.WantIDs || c.dropped {
		return
	}
	size := r.held + int64(b.Size())
	if r.memory.Resize(size) == nil && r.account.Resize(size) == nil {
		c.pieces = append(c.pieces, b)
		r.held += int64(b.Size())
		return
	}
	for _, p := range c.pieces {
		r.held -= int64(p.Size())
	}
	c.pieces, c.dropped = nil, true
	_ = errors.Join(r.memory.Resize(r.held), r.account.Resize(r.held)) // cannot fail: shrinks
}

// examine updates the keys of a candidate with a span.
func (s *search) examine(c *candidate, sp tracestore.Span) {
	s.outcome.Scanned++
	if (!c.remote || sp.Start > c.newest) && s.remoteQuery.matches(sp) {
		c.remote, c.newest = true, sp.Start
	}
	if sp.Start < s.from || sp.Start > s.to || c.matched && sp.Start <= c.key {
		return
	}
	if tracestore.Match(s.query.Where, sp) {
		c.matched, c.key = true, sp.Start
	}
}

// ordered returns the matching traces after a cursor, newest first.
func (r *round) ordered(after tracestore.Cursor) []*candidate {
	var out []*candidate
	for _, c := range r.candidates {
		if c.matched && isAfter(after, c.key, c.id) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, compareCandidates)
	return out
}
