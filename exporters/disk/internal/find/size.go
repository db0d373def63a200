package find

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TraceSpans implements tracestore.Reader. In a segment, the rows of a trace are adjacent, so it
// counts the rows of all blocks that the trace index names, except the first and the last block,
// which also hold other traces. It ignores damage, which is reported when the trace is read.
func (f *Finder) TraceSpans(ctx context.Context, tenant string, id otlpdata.TraceID) (int, error) {
	s := f.store.Begin()
	defer s.Release()
	spans := 0
	for _, src := range s.Sources {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if t, ok := src.(source.Statistics); ok {
			spans += rowsOfTrace(src, t, tenant, id)
			continue
		}
		if _, ok := src.(source.Tally); !ok {
			continue // reading it would take as long as reading the trace
		}
		if err := src.Trace(ctx, tenant, id, func(_ source.Block, list []int32) error {
			spans += len(list)
			return nil
		}); err != nil {
			return 0, err
		}
	}
	return spans, nil
}

// rowsOfTrace returns the number of rows in the blocks between the first and the last that may have
// rows of a trace.
func rowsOfTrace(src source.Source, t source.Statistics, tenant string, id otlpdata.TraceID) int {
	numbers, err := t.TraceBlocks(tenant, []otlpdata.TraceID{id})
	if err != nil || len(numbers) <= 2 {
		return 0
	}
	blocks, err := src.Blocks()
	if err != nil {
		return 0
	}
	rows := 0
	for _, n := range numbers[1 : len(numbers)-1] {
		rows += blocks[n].Rows
	}
	return rows
}
