package find

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// errTooLong stops reading a trace with more spans than the outline may have.
var errTooLong = errors.New("trace has more spans than the limit")

// Outline implements tracestore.Reader. It reads heads of rows, as summaries do, and the cells
// of events, links and peers.
func (f *Finder) Outline(
	ctx context.Context, tenant string, id otlpdata.TraceID, limit int,
	hold func(spans, texts int) error, take func([]tracestore.SummarySpan) error,
) error {
	s := f.store.Begin() // hold reserves the memory
	defer s.Release()
	h := outlineHeads{reader: newTraceReader(s, tenant), max: limit, nextCheck: limit, hold: hold}
	h.reader.extras = &extrasReader{}
	err := h.read(ctx, id)
	switch {
	case err != nil:
		return err
	case len(h.spans) > 0:
		err = take(h.spans)
	}
	return cmp.Or(err, s.Damaged())
}

// outlineHeads collects the spans of an outline.
type outlineHeads struct {
	reader    *traceReader
	max       int // maximum number of spans; 0 or less: no limit
	nextCheck int // number of spans at which to check whether more than max are left without duplicates
	hold      func(spans, texts int) error
	spans     []tracestore.SummarySpan
	names     int // total length of names in bytes
}

func (h *outlineHeads) read(ctx context.Context, id otlpdata.TraceID) error {
	err := h.reader.eachPart(ctx, id, func(src int, t *rows.Tables, b source.Block, list []int32) (err error) {
		before := len(h.spans)
		if h.spans, err = h.reader.appendHeads(h.spans, id, src, t, b, list); err != nil {
			return err
		}
		return h.account(before)
	})
	if errors.Is(err, errTooLong) {
		return nil
	}
	if err != nil {
		return err
	}
	n := len(h.spans)
	if h.spans, err = h.reader.withoutDuplicates(ctx, id, h.spans); err == nil && len(h.spans) != n {
		h.names = 0
		err = h.account(0)
	}
	return err
}

// account reports the spans from index from on to hold. It returns errTooLong if there are more
// than max.
func (h *outlineHeads) account(from int) error {
	for i := range h.spans[from:] {
		h.names += len(h.spans[from+i].Name)
	}
	texts := h.names
	if x := h.reader.extras; x != nil {
		texts += x.size
	}
	if err := h.hold(len(h.spans), texts); err != nil {
		return err
	}
	if h.max <= 0 || len(h.spans) <= h.nextCheck {
		return nil
	}
	sortHeads(h.spans)
	once := 1
	for i := range h.spans[1:] {
		if !sameKey(h.spans[i], h.spans[i+1]) {
			once++
		}
	}
	if once > h.max {
		h.spans = slices.CompactFunc(h.spans, sameKey)
		return errTooLong
	}
	h.nextCheck = 2 * len(h.spans)
	return nil
}
