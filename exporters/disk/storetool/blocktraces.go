package storetool

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// traceKey is a trace of a tenant.
type traceKey struct {
	tenant string
	id     otlpdata.TraceID
}

// spanKey identifies a span. Duplicates have the same key; the reverse need not be true.
type spanKey struct {
	trace otlpdata.TraceID
	span  otlpdata.SpanID
}

// blockTraces holds the traces of a block, and those of their spans that another source may
// duplicate.
type blockTraces struct {
	traces map[string][]otlpdata.TraceID // by tenant
	last   traceKey
	spans  map[spanKey]struct{}
	whole  bool // any span of the traces may be duplicated
}

func (t *blockTraces) reset() {
	if t.traces == nil {
		t.traces, t.spans = map[string][]otlpdata.TraceID{}, map[spanKey]struct{}{}
	}
	clear(t.traces)
	clear(t.spans)
	t.last, t.whole = traceKey{}, false
}

// add adds the trace of a span, and the span itself if only is set, otherwise all spans of the
// trace.
func (t *blockTraces) add(tenant string, h *rows.Head, only bool) {
	if key := (traceKey{tenant, h.TraceID}); key != t.last || len(t.traces) == 0 {
		t.last = key
		t.traces[tenant] = append(t.traces[tenant], h.TraceID)
	}
	if !only {
		t.whole = true
		return
	}
	t.spans[spanKey{h.TraceID, h.SpanID}] = struct{}{}
}

// mayHave reports whether a span may be a duplicate of one in the block.
func (t *blockTraces) mayHave(h *rows.Head) bool {
	_, ok := t.spans[spanKey{h.TraceID, h.SpanID}]
	return ok || t.whole
}

// each calls visit with the rows of the traces in a source.
func (t *blockTraces) each(ctx context.Context, src source.Source, visit func(b source.Block, list []int32) error) error {
	for tenant, ids := range t.traces {
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
