package storetool

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// traceKey is a trace of a tenant.
type traceKey struct {
	tenant string
	id     otlpdata.TraceID
}

// blockTraces holds the traces of a block by tenant.
type blockTraces map[string][]otlpdata.TraceID

// each calls visit with the rows of the traces in a source.
func (t blockTraces) each(ctx context.Context, src source.Source, visit func(b source.Block, list []int32) error) error {
	for tenant, ids := range t {
		if many, ok := src.(source.Traces); ok {
			err := many.Traces(ctx, tenant, ids, func(b source.Block, _ int, list []int32) error { return visit(b, list) })
			if err != nil {
				return err
			}
			continue
		}
		for _, id := range ids {
			if err := src.Trace(ctx, tenant, id, visit); err != nil {
				return err
			}
		}
	}
	return nil
}
