package memory

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/callpath"
)

// ProfilePaths implements tracestore.PathProfiler.
func (e *exporter) ProfilePaths(
	ctx context.Context, q tracestore.Query, sel tracestore.Selection, o tracestore.PathOptions,
) (tracestore.PathProfile, error) {
	return callpath.Profile(ctx, e, q, sel, o)
}
