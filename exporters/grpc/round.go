package grpc

import (
	"context"
	"errors"
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// round is the answer to one question.
type round struct {
	search     *search
	candidates map[otlpdata.TraceID]*candidate
	count      int                   // traces
	held       int64                 // bytes of pieces
	memory     *pipeline.Reservation // for them
	incomplete string                // what the other side said of its answer
	// asked: traces have a span that the question asks for. oldest is the least of their keys: every trace with a greater one is here.
	asked  bool
	oldest uint64
}

// candidate is a trace that may be a result.
type candidate struct {
	id      otlpdata.TraceID
	pieces  []*otlpdata.Batch
	dropped bool   // pieces are not all there
	matched bool   // it has a key
	key     uint64 // greatest start of a span that the query matches
	asked   bool
	newest  uint64 // greatest start of a span that the question asks for
}

// errTooManyTraces ends the answer of a store that sends more traces than any question asks for.
var errTooManyTraces = errors.New("the remote store sends more traces than it is asked for (max_traces_per_question)")

// ask asks the question, and looks at what comes. The round holds memory until it is released.
func (s *search) ask(ctx context.Context) (*round, error) {
	memory, err := s.kept.Reserve(0)
	if err != nil { // nothing always fits
		return nil, err
	}
	r := &round{search: s, candidates: make(map[otlpdata.TraceID]*candidate), memory: memory}
	r.incomplete, err = s.reader.find(s.reading(ctx, s.query.Tenant), s.question, func(otlp []byte) error {
		return pieces(ctx, otlp, s.query.Tenant, r.add)
	})
	if errors.Is(err, errTooManyTraces) {
		r.incomplete, err = err.Error(), nil
	}
	if err != nil {
		memory.Release()
		return nil, s.failed(ctx, err)
	}
	r.count = len(r.candidates)
	for _, c := range r.candidates {
		if c.asked && (!r.asked || c.newest < r.oldest) {
			r.asked, r.oldest = true, c.newest
		}
	}
	return r, nil
}

// add takes a piece of a trace.
func (r *round) add(id otlpdata.TraceID, b *otlpdata.Batch) error {
	c := r.candidates[id]
	if c == nil {
		if len(r.candidates) >= r.search.cfg.MaxQuestion {
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

// hold keeps a piece while there is room.
func (r *round) hold(c *candidate, b *otlpdata.Batch) {
	if r.search.want == tracestore.WantIDs || c.dropped {
		return
	}
	if r.memory.Resize(r.held+int64(b.Size())) == nil {
		c.pieces = append(c.pieces, b)
		r.held += int64(b.Size())
		return
	}
	for _, p := range c.pieces {
		r.held -= int64(p.Size())
	}
	c.pieces, c.dropped = nil, true
	_ = r.memory.Resize(r.held) // less never fails
}

// examine looks whether a span makes its trace newer.
func (s *search) examine(c *candidate, sp tracestore.Span) {
	s.outcome.Scanned++
	if (!c.asked || sp.Start > c.newest) && s.question.holds(sp) {
		c.asked, c.newest = true, sp.Start
	}
	if sp.Start < s.from || sp.Start > s.to || c.matched && sp.Start <= c.key {
		return
	}
	if tracestore.Match(s.query.Where, sp) {
		c.matched, c.key = true, sp.Start
	}
}

// ordered returns the traces that match and are behind the cursor, newest first.
func (r *round) ordered(after tracestore.Cursor) []*candidate {
	var out []*candidate
	for _, c := range r.candidates {
		if c.matched && behind(after, c.key, c.id) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, newestFirst)
	return out
}
