package multistore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ tracestore.Reader = (*Store)(nil)

// Traces implements tracestore.Reader. If stores fail, everything that the others have comes first
// and then a DamagedError.
func (s *Store) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return readTraces(ctx, s.stores, tenant, refs, func(ctx context.Context, r tracestore.Reader) iter.Seq2[tracestore.Trace, error] {
		return r.Traces(ctx, tenant, refs)
	})
}

// SelectSpans implements tracestore.Reader.
func (s *Store) SelectSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, spans []otlpdata.SpanID,
) iter.Seq2[tracestore.Trace, error] {
	refs := []tracestore.TraceRef{{ID: id}}
	return readTraces(ctx, s.stores, tenant, refs, func(ctx context.Context, r tracestore.Reader) iter.Seq2[tracestore.Trace, error] {
		return r.SelectSpans(ctx, tenant, id, spans)
	})
}

// readTraces returns the traces for refs from several stores, in the order of refs.
func readTraces[T any](
	ctx context.Context, stores []*member, tenant string, refs []tracestore.TraceRef,
	read func(ctx context.Context, store T) iter.Seq2[tracestore.Trace, error],
) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		m := traceMerge{ctx: ctx, yield: yield}
		for _, one := range stores {
			c := one.newCall(ctx)
			defer c.release()
			values := func(yield func(tracestore.Trace, error) bool) {
				store, ok := tracestore.As[T](c.ctx, tenant, c.Store)
				if !ok {
					yield(tracestore.Trace{}, unsupported(c.Name))
					return
				}
				read(c.ctx, store)(yield)
			}
			m.streams = append(m.streams, &stream[tracestore.Trace]{call: c, values: values})
		}
		err := m.run(refs)
		for _, s := range m.streams {
			s.close()
		}
		m.memory.Release()
		if err != nil && !errors.Is(err, errStop) {
			yield(tracestore.Trace{}, err)
		}
	}
}

// errStop ends the work for a caller that wants no more values.
var errStop = errors.New("stopped")

// traceMerge merges the traces of several stores.
type traceMerge struct {
	ctx     context.Context
	yield   func(tracestore.Trace, error) bool
	streams []*stream[tracestore.Trace] // that have not ended
	memory  *tracestore.Memory          // for pieces
	kept    int64                       // bytes of yielded pieces that are kept to find duplicates
	yielded bool
	losses
}

func (m *traceMerge) run(refs []tracestore.TraceRef) (err error) {
	if m.memory, err = tracestore.Reserve(m.ctx, 0); err != nil {
		return err
	}
	m.total = len(m.streams)
	for _, ref := range refs {
		if err := m.fill(); err != nil {
			return err
		}
		var holders []*stream[tracestore.Trace]
		for _, s := range m.streams {
			if s.head.ID == ref.ID {
				holders = append(holders, s)
			}
		}
		if err := m.trace(ref.ID, holders); err != nil {
			return err
		}
	}
	for len(m.streams) > 0 { // errors follow the last trace
		for _, s := range m.streams {
			s.head = nil
		}
		if err := m.fill(); err != nil {
			return err
		}
	}
	if !m.yielded && m.allFailed() {
		return m.noAnswer()
	}
	return damage(m.missing)
}

// fill reads the heads of all streams and removes those that have ended.
func (m *traceMerge) fill() error {
	var empty []*stream[tracestore.Trace]
	for _, s := range m.streams {
		if s.head == nil {
			empty = append(empty, s)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	concurrently(len(empty), func(i int) { empty[i].fill() })
	left, held := m.streams[:0:0], m.kept
	for _, s := range m.streams {
		if s.err != nil {
			if err := m.note(m.ctx, s.call.Name, s.err); err != nil {
				return err
			}
		}
		if s.head == nil {
			continue
		}
		err := m.memory.Resize(held + s.sent + int64(s.head.Spans.Size()))
		if err == nil {
			left, held = append(left, s), held+int64(s.head.Spans.Size())
		} else if err := m.tooLarge(s, err); err != nil {
			return err
		}
	}
	m.streams = left
	return m.memory.Resize(held)
}

// tooLarge ends a stream if the memory of queries has no space for as much as the stream has sent
// of one trace, so that a store that sends without end leaves memory for the others. It returns the
// error if there are no others.
func (m *traceMerge) tooLarge(s *stream[tracestore.Trace], err error) error {
	if m.total == 1 || len(m.failed) == m.total-1 {
		return err
	}
	s.close()
	m.failed = append(m.failed, err)
	m.missing.Add(tracestore.Reason{Kind: tracestore.ReasonLimit, Store: s.call.Name,
		Text: "its part of the trace is too large for service.limits.query_memory and is cut"})
	return nil
}

// trace yields the pieces of a trace that holders have. If several have the trace, it leaves out
// duplicates.
func (m *traceMerge) trace(id otlpdata.TraceID, holders []*stream[tracestore.Trace]) error {
	var seen *storequery.Dedup
	if len(holders) > 1 {
		seen = storequery.NewDedup()
	}
	for more := len(holders) > 0; more; {
		more = false
		for _, s := range holders { // in turn, so that a stream without end does not block the others
			if s.head == nil || s.head.ID != id {
				continue
			}
			if err := m.piece(id, s.head.Spans, seen); err != nil {
				return err
			}
			s.sent += int64(s.head.Spans.Size())
			s.head, more = nil, true
		}
		if err := m.fill(); err != nil {
			return err
		}
	}
	for _, s := range holders {
		s.sent = 0
	}
	m.kept = 0
	return nil
}

func (m *traceMerge) piece(id otlpdata.TraceID, b *otlpdata.Batch, seen *storequery.Dedup) (err error) {
	if seen != nil {
		m.kept += int64(b.Size())
		if b, err = distinct(b, seen); b == nil || err != nil {
			return err
		}
	}
	m.yielded = true
	if !m.yield(tracestore.Trace{ID: id, Spans: b}, nil) {
		return errStop
	}
	return nil
}

// unsupported is the error of a call that a store does not support.
func unsupported(store string) error {
	return fmt.Errorf("%w: store %s has no such method", tracestore.ErrUnsupported, store)
}
