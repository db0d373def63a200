package find

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// errEnough ends the reading of a trace that is too long.
var errTooLong = errors.New("there are more spans than are wanted")

// Outline implements tracestore.Outliner. It reads heads, as summaries do.
func (f *Finder) Outline(
	ctx context.Context, tenant string, id otlpdata.TraceID, most int,
	hold func(spans, names int) error, take func([]tracestore.SummarySpan) error,
) error {
	s := f.store.Begin()
	defer s.Release()
	h := outlineHeads{reader: newTraceReader(s, tenant), max: most, nextCheck: most, hold: hold}
	err := h.read(ctx, id)
	switch {
	case err != nil:
		return err
	case s.FirstDamage() != nil:
		return fmt.Errorf("reading trace %s: %s: %w", id, s.DamageReason(), s.FirstDamage())
	case len(h.spans) == 0:
		return nil
	}
	return take(h.spans)
}

// outlineHeads gathers what an outline needs of a trace.
type outlineHeads struct {
	reader    *traceReader
	max       int // spans; 0 or less: all
	nextCheck int // spans with which to look whether they are more than most without duplicates
	hold      func(spans, names int) error
	spans     []tracestore.SummarySpan
	names     int // bytes
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

// account notes the spans from a place on. The error is errEnough when there are more than most.
func (h *outlineHeads) account(from int) error {
	for i := range h.spans[from:] {
		h.names += len(h.spans[from+i].Name)
	}
	if err := h.hold(len(h.spans), h.names); err != nil {
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
