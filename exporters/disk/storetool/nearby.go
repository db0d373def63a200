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

// spanKey is what spans that are the same have in common, at least.
type spanKey struct {
	trace otlpdata.TraceID
	span  otlpdata.SpanID
}

// nearby is the traces of a block, and which of their spans may occur in another source, too.
type nearby struct {
	traces map[string][]otlpdata.TraceID // by tenant
	last   traceKey
	spans  map[spanKey]struct{}
	any    bool // all spans of the traces may
}

func (n *nearby) begin() {
	if n.traces == nil {
		n.traces, n.spans = map[string][]otlpdata.TraceID{}, map[spanKey]struct{}{}
	}
	clear(n.traces)
	clear(n.spans)
	n.last, n.any = traceKey{}, false
}

// add adds the trace of a span, and the span or, if it is not the only one to consider, all of the trace.
func (n *nearby) add(tenant string, h *rows.Head, only bool) {
	if key := (traceKey{tenant, h.TraceID}); key != n.last || len(n.traces) == 0 {
		n.last = key
		n.traces[tenant] = append(n.traces[tenant], h.TraceID)
	}
	if !only {
		n.any = true
		return
	}
	n.spans[spanKey{h.TraceID, h.SpanID}] = struct{}{}
}

// may reports whether a span of a trace may be the same as one of the block.
func (n *nearby) may(h *rows.Head) bool {
	_, ok := n.spans[spanKey{h.TraceID, h.SpanID}]
	return ok || n.any
}

// each visits the rows that a source has of the traces.
func (n *nearby) each(ctx context.Context, src source.Source, visit func(b source.Block, list []int32) error) error {
	for tenant, ids := range n.traces {
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
