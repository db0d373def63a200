package find

import (
	"context"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/callpath"
)

var _ callpath.HeadReader = (*Finder)(nil)

// ProfilePaths implements tracestore.PathProfiler. All its searches read the same view.
func (f *Finder) ProfilePaths(
	ctx context.Context, q tracestore.Query, sel tracestore.Selection, o tracestore.PathOptions,
) (tracestore.PathProfile, error) {
	frozen, release := f.store.Freeze()
	defer release()
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return tracestore.PathProfile{}, err
	}
	defer memory.Release()
	return callpath.Profile(ctx, &Finder{store: frozen, shared: &sharedFilter{memory: memory}}, q, sel, o)
}

// EachHeads implements callpath.HeadReader. It reads only heads of rows, and each block once for
// several traces. Long traces are read separately.
func (f *Finder) EachHeads(
	ctx context.Context, tenant string, ids []otlpdata.TraceID, limit int,
	take func(id otlpdata.TraceID, spans []tracestore.SummarySpan) error,
) error {
	s := f.store.BeginQuery(ctx)
	defer s.Release()
	r := newTraceReader(s, tenant)
	for some := range slices.Chunk(ids, maxPrefetch) {
		if err := r.prefetchHeads(ctx, some); err != nil {
			return err
		}
		for i, id := range some {
			var err error
			if r.prefetchedHeads.lists[i] != nil {
				err = r.takeHeads(ctx, id, take)
			} else { // too long, or it does not exist
				err = r.takeLong(ctx, id, limit, take)
			}
			if err != nil {
				return err
			}
		}
	}
	return s.Damaged()
}

// takeHeads passes on the prefetched spans of a trace.
func (r *traceReader) takeHeads(
	ctx context.Context, id otlpdata.TraceID, take func(otlpdata.TraceID, []tracestore.SummarySpan) error,
) error {
	spans := r.prefetchedHeads.take(id)
	defer r.freeHeads(spans)
	once, err := r.withoutDuplicates(ctx, id, spans)
	if err != nil {
		return err
	}
	return take(id, once)
}

// takeLong reads a trace and passes it on, if it exists. It may end after limit spans.
func (r *traceReader) takeLong(
	ctx context.Context, id otlpdata.TraceID, limit int, take func(otlpdata.TraceID, []tracestore.SummarySpan) error,
) error {
	reserved := func(int, int) error { return nil } // by the reader
	h := outlineHeads{reader: r, max: limit, nextCheck: limit, hold: reserved}
	defer func() { r.freeHeads(h.spans) }()
	if err := h.read(ctx, id); err != nil || len(h.spans) == 0 {
		return err
	}
	return take(id, h.spans)
}
