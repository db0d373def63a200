package search

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// errEnough ends the reading of a trace that is too long.
var errEnough = errors.New("there are more spans than are wanted")

// Outline implements tracestore.Outliner. It reads heads, as summaries do.
func (e *Engine) Outline(
	ctx context.Context, tenant string, id otlpdata.TraceID, most int, take func([]tracestore.SummarySpan) error,
) error {
	s := e.begin()
	defer s.lease.release()
	r := newTraceReader(s, tenant)
	var spans []tracestore.SummarySpan
	err := r.eachPart(ctx, id, func(src int, t *rows.Tables, b source.Block, list []int32) (err error) {
		if spans, err = r.appendHeads(spans, id, src, t, b, list); err == nil && most > 0 && len(spans) > most {
			err = errEnough
		}
		return err
	})
	if err == nil {
		spans, err = r.withoutDuplicates(ctx, id, spans)
	} else if errors.Is(err, errEnough) {
		err = nil
	}
	switch {
	case err != nil:
		return err
	case s.damage.first != nil:
		return fmt.Errorf("reading trace %s: %s: %w", id, s.damage.reason(), s.damage.first)
	case len(spans) == 0:
		return nil
	}
	return take(spans)
}
