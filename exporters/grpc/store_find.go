package grpc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// storeTraces reads traces with the store service. ctx must have the metadata of withReadMetadata.
func (e *exporter) storeTraces(
	ctx context.Context, tenant string, refs []tracestore.TraceRef, yield func(tracestore.Trace, error) bool,
) {
	traceStream(ctx, e, tenant, "Traces", &storewire.Traces{Refs: refs}, refs, yield)
}

// traceStream calls a method that returns the traces of refs, in their order.
func traceStream[Q any](
	ctx context.Context, e *exporter, tenant, method string, question *Q, refs []tracestore.TraceRef,
	yield func(tracestore.Trace, error) bool,
) {
	next := 0 // refs before it are complete
	err := receiveStore(ctx, e.store, method, question, func(message []byte) error {
		var m storewire.TracePart
		if err := storewire.Only(storewire.NewAnswer(message, nil), &m); err != nil {
			return err
		}
		for next < len(refs) && refs[next].ID != m.ID {
			next++
		}
		if next == len(refs) {
			return fmt.Errorf("remote storage server sent trace %s, which was not requested, or in another order", m.ID)
		}
		return storePieces(ctx, tenant, m.ID, m.Spans, func(b *otlpdata.Batch) error {
			if !yield(tracestore.Trace{ID: m.ID, Spans: b}, nil) {
				return errStop
			}
			return nil
		})
	})
	if err != nil && !errors.Is(err, errStop) {
		yield(tracestore.Trace{}, e.storeError(ctx, err))
	}
}

// storePieces calls each with the pieces of a trace.
func storePieces(ctx context.Context, tenant string, id otlpdata.TraceID, otlp []byte, each func(*otlpdata.Batch) error) error {
	return pieces(ctx, otlp, tenant, func(got otlpdata.TraceID, b *otlpdata.Batch) error {
		if got != id {
			return fmt.Errorf("remote storage server sent spans of trace %s for trace %s", got, id)
		}
		return each(b)
	})
}

// storeSearch is a running query of the store service.
type storeSearch struct {
	*exporter
	query   tracestore.Query // what is left of it
	want    tracestore.Want
	yield   func(tracestore.Result) bool
	memory  *tracestore.Memory // of the trace that is being received
	open    *tracestore.Result // nil between traces
	pieces  []*otlpdata.Batch  // of the open trace
	size    int                // bytes of pieces
	found   int                // results of the current request
	scanned int                // spans examined by earlier requests
	ended   *storewire.FindEnd // of the current request
	partial tracestore.Reasons // about traces that were returned in part
	omitted tracestore.Reasons // about response fields that this process does not know
	outcome tracestore.Outcome
}

// storeFind runs a query with the store service. ctx must have the metadata of withReadMetadata.
func (e *exporter) storeFind(ctx context.Context, q tracestore.Query, want tracestore.Want) *tracestore.Results {
	s := &storeSearch{exporter: e, query: q, want: want}
	s.outcome = tracestore.Unread()
	return &tracestore.Results{All: s.results(ctx), Outcome: func() tracestore.Outcome { return s.outcome }}
}

func (s *storeSearch) results(ctx context.Context) iter.Seq2[tracestore.Result, error] {
	return func(yield func(tracestore.Result, error) bool) {
		s.yield = func(r tracestore.Result) bool { return yield(r, nil) }
		err := s.run(ctx)
		if err != nil && !errors.Is(err, errStop) {
			s.outcome = tracestore.Outcome{Reasons: tracestore.BecauseOf(err), Scanned: s.outcome.Scanned}
			yield(tracestore.Result{}, err)
		}
	}
}

// run sends requests until the server has returned everything or the limit is reached, because the
// server may limit a response.
func (s *storeSearch) run(ctx context.Context) (err error) {
	if s.memory, err = tracestore.Reserve(ctx, 0); err != nil {
		return err
	}
	defer s.memory.Release()
	for more := true; more; {
		if err := s.request(ctx); err != nil {
			return err
		}
		if more, err = s.next(); err != nil {
			return err
		}
	}
	return nil
}

func (s *storeSearch) request(ctx context.Context) error {
	s.found, s.ended = 0, nil
	err := receiveStore(ctx, s.store, "Find", &storewire.Find{Query: s.query, Want: s.want}, func(message []byte) error {
		memory, err := tracestore.Reserve(ctx, int64(len(message)))
		if err != nil {
			return err
		}
		defer memory.Release()
		d := storewire.NewAnswer(message, memory)
		for !d.Done() {
			var part storewire.FoundPart
			if err := storewire.Next(d, &part); err != nil {
				return err
			}
			if err := s.receive(ctx, &part); err != nil {
				return err
			}
		}
		s.omitted.Add(d.Omitted()...)
		return nil
	})
	switch {
	case errors.Is(err, errStop):
		return err
	case err != nil:
		return s.storeError(ctx, err)
	case s.ended == nil || s.open != nil:
		return errors.New("remote storage server ended a response early")
	}
	return nil
}

// receive adds a part of the results, and yields the open trace if it is complete.
func (s *storeSearch) receive(ctx context.Context, part *storewire.FoundPart) error {
	if part.Trace != nil {
		switch {
		case s.open != nil:
			return fmt.Errorf("remote storage server sent trace %s within trace %s", part.Trace.ID, s.open.ID)
		case s.query.Limit > 0 && s.found == s.query.Limit:
			return fmt.Errorf("remote storage server sent more traces than requested (%d)", s.query.Limit)
		}
		s.open = part.Trace
	}
	if s.open == nil && (part.Spans != nil || part.Complete) {
		return errors.New("remote storage server sent a part of an unknown trace")
	}
	if part.Spans != nil {
		if err := storePieces(ctx, s.query.Tenant, s.open.ID, part.Spans, s.hold); err != nil {
			return err
		}
	}
	s.outcome.Scanned = max(s.outcome.Scanned, s.scanned+part.Scanned)
	s.ended = part.End
	if !part.Complete {
		return nil
	}
	return s.complete()
}

// complete yields the open trace.
func (s *storeSearch) complete() (err error) {
	r, all := *s.open, s.pieces
	s.open, s.pieces, s.size = nil, nil, 0
	if r.Summary != nil {
		r.Summary.ID = r.ID
	}
	switch {
	case s.want == tracestore.WantSummaries && r.Summary == nil, s.want == tracestore.WantFull && len(all) == 0:
		return fmt.Errorf("remote storage server sent trace %s without content", r.ID)
	case s.want == tracestore.WantFull:
		if r.Spans, err = otlpdata.Concat(all...); err != nil {
			return err
		}
	}
	s.found++
	if !s.yield(r) {
		return errStop
	}
	s.memory.Release()
	return nil
}

// hold adds a piece to the open trace. Pieces beyond max_trace_size are dropped.
func (s *storeSearch) hold(b *otlpdata.Batch) error {
	if s.size += b.Size(); s.size > int(s.cfg.MaxTrace) {
		s.partial = s.tooLarge(s.open.ID)
		return nil
	}
	if err := s.memory.Grow(int64(b.Size())); err != nil {
		return err
	}
	s.pieces = append(s.pieces, b)
	return nil
}

// tooLarge records that a result has only a part of a trace.
func (e *exporter) tooLarge(id otlpdata.TraceID) tracestore.Reasons {
	return tracestore.Because(tracestore.ReasonLimit,
		fmt.Sprintf("trace %s is larger than max_trace_size (%s) and is incomplete", id, e.cfg.MaxTrace))
}

// next prepares the next request, or sets the outcome and returns false if there is none.
func (s *storeSearch) next() (more bool, err error) {
	o := s.ended.Outcome
	s.scanned += o.Scanned
	o.Scanned = s.scanned
	s.outcome = o
	s.outcome.Reasons.Add(s.partial...)
	s.outcome.Reasons.Add(s.omitted...)
	if !s.ended.Limited || !o.Next.Set {
		return false, nil
	}
	if s.query.Limit > 0 {
		if s.query.Limit -= s.found; s.query.Limit <= 0 {
			return false, nil
		}
	}
	if !isAfter(s.query.After, o.Next.Start, o.Next.ID) {
		return false, errors.New("remote storage server sent a cursor that does not advance")
	}
	s.query.After = o.Next
	if budget := &s.query.Budget.Spans; *budget > 0 {
		if *budget -= s.ended.Outcome.Scanned; *budget <= 0 {
			s.outcome.Reasons = tracestore.BudgetSpent(o.Scanned)
			return false, nil
		}
	}
	return true, nil
}
