package remotestorage

import (
	"context"
	"iter"
	"slices"

	"github.com/tracing-backend/tracing/internal/translate/otlpchunks"
	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// eachPiece passes the encoded spans of a batch to send, in pieces of at most limit bytes. Only a
// piece with a single span may be larger.
func eachPiece(b *otlpdata.Batch, limit int, send func(piece []byte) error) error {
	if b.Size() > limit {
		return otlpchunks.Split(b, limit, func(piece []byte, _ int) error { return send(piece) })
	}
	encoded, err := b.Encoded()
	if err != nil || b.Len() == 0 {
		return err
	}
	return send(encoded)
}

// sendTraces sends the requested traces that exist, in the order of the request.
func sendTraces(ctx context.Context, of asked[tracestore.Reader], q *storewire.Traces, send sender) error {
	return of.sendParts(ctx, of.store.Traces(ctx, of.tenant, q.Refs), send)
}

// sendSelected sends some spans of a trace.
func sendSelected(ctx context.Context, of asked[tracestore.Reader], q *storewire.SelectSpans, send sender) error {
	return of.sendParts(ctx, of.store.SelectSpans(ctx, of.tenant, q.Trace, q.Spans), send)
}

func (s *storeService) sendParts(ctx context.Context, traces iter.Seq2[tracestore.Trace, error], send sender) error {
	for t, err := range traces {
		if err != nil {
			return err
		}
		err = eachPiece(t.Spans, s.chunk, func(piece []byte) error {
			return sendValue(send, &storewire.TracePart{ID: t.ID, Spans: piece})
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// sendFound sends the traces that match a query, newest first.
func sendFound(ctx context.Context, of asked[tracestore.Reader], q *storewire.Find, send sender) error {
	capped := q.Query.Limit <= 0 || q.Query.Limit > of.limit
	if capped {
		q.Query.Limit = of.limit
	}
	of.admit(&q.Query, of.tenant)
	results, err := of.store.Find(ctx, q.Query, q.Want)
	if err != nil {
		return err
	}
	w := foundWriter{chunk: of.chunk, send: send, scanned: func() int { return results.Outcome().Scanned }}
	for r, err := range results.All {
		if err != nil {
			return err
		}
		if err := w.add(&r); err != nil {
			return err
		}
	}
	o := results.Outcome()
	end := &storewire.FindEnd{Outcome: o, Limited: capped && o.Complete() && o.Next.Set}
	if err := storewire.Append(&w.message, &storewire.FoundPart{End: end}); err != nil {
		return err
	}
	return w.flush()
}

// foundWriter sends results in messages of about max_chunk_size.
type foundWriter struct {
	chunk   int
	scanned func() int // spans examined so far
	send    sender
	message storewire.Encoder // not sent yet
	traces  int               // in the message
}

// foundPerMessage is the maximum number of results in one message.
const foundPerMessage = 100

func (w *foundWriter) add(r *tracestore.Result) error {
	spans := r.Spans
	r.Spans = nil
	if err := storewire.Append(&w.message, &storewire.FoundPart{Trace: r, Complete: spans == nil, Scanned: w.scanned()}); err != nil {
		return err
	}
	if spans != nil {
		err := eachPiece(spans, w.chunk, func(piece []byte) error {
			if w.message.Len() > 0 && w.message.Len()+len(piece) > w.chunk {
				if err := w.flush(); err != nil {
					return err
				}
			}
			return storewire.Append(&w.message, &storewire.FoundPart{Spans: piece})
		})
		if err == nil {
			err = storewire.Append(&w.message, &storewire.FoundPart{Complete: true})
		}
		if err != nil {
			return err
		}
	}
	if w.traces++; w.message.Len() < w.chunk && w.traces < foundPerMessage {
		return nil
	}
	return w.flush()
}

// flush sends the message.
func (w *foundWriter) flush() error {
	w.traces = 0
	return w.send(w.message.Take())
}

// spansPerOutline is the number of spans in one message of an outline.
const spansPerOutline = 4096

// outlineMemory is the approximate size of a tracestore.SummarySpan in bytes.
const outlineMemory = 96

// sendOutline sends the outline of a trace, which is enough to draw it.
func sendOutline(ctx context.Context, of asked[tracestore.Reader], q *storewire.Outline, send sender) error {
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return err
	}
	defer memory.Release()
	hold := func(spans, textBytes int) error { return memory.Resize(int64(spans)*outlineMemory + int64(textBytes)) }
	return of.store.Outline(ctx, of.tenant, q.Trace, q.Limit, hold, func(spans []tracestore.SummarySpan) error {
		for part := range slices.Chunk(spans, spansPerOutline) {
			if err := sendValue(send, &part); err != nil {
				return err
			}
		}
		return nil
	})
}
