package search

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
var errEnough = errors.New("there are more spans than are wanted")

// Outline implements tracestore.Outliner. It reads heads, as summaries do.
func (e *Engine) Outline(
	ctx context.Context, tenant string, id otlpdata.TraceID, most int,
	hold func(spans, names int) error, take func([]tracestore.SummarySpan) error,
) error {
	s := e.begin()
	defer s.lease.release()
	h := outlineHeads{traceReader: newTraceReader(s, tenant), most: most, enough: most, hold: hold}
	err := h.read(ctx, id)
	switch {
	case err != nil:
		return err
	case s.damage.first != nil:
		return fmt.Errorf("reading trace %s: %s: %w", id, s.damage.reason(), s.damage.first)
	case len(h.spans) == 0:
		return nil
	}
	return take(h.spans)
}

// outlineHeads gathers what an outline needs of a trace.
type outlineHeads struct {
	*traceReader
	most   int // spans; 0 or less: all
	enough int // spans with which to look whether they are more than most without duplicates
	hold   func(spans, names int) error
	spans  []tracestore.SummarySpan
	names  int // bytes
}

func (h *outlineHeads) read(ctx context.Context, id otlpdata.TraceID) error {
	err := h.eachPart(ctx, id, func(src int, t *rows.Tables, b source.Block, list []int32) (err error) {
		before := len(h.spans)
		if h.spans, err = h.appendHeads(h.spans, id, src, t, b, list); err != nil {
			return err
		}
		return h.account(before)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	if err != nil {
		return err
	}
	n := len(h.spans)
	if h.spans, err = h.withoutDuplicates(ctx, id, h.spans); err == nil && len(h.spans) != n {
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
	if h.most <= 0 || len(h.spans) <= h.enough {
		return nil
	}
	sortHeads(h.spans)
	once := 1
	for i := range h.spans[1:] {
		if !sameKey(h.spans[i], h.spans[i+1]) {
			once++
		}
	}
	if once > h.most {
		h.spans = slices.CompactFunc(h.spans, sameKey)
		return errEnough
	}
	h.enough = 2 * len(h.spans)
	return nil
}
