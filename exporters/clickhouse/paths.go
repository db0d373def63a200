package clickhouse

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/callpath"
)

var _ tracestore.PathProfiler = (*exporter)(nil)

// ProfilePaths implements tracestore.PathProfiler with searches, and reads what it needs of the
// traces that these find.
func (e *exporter) ProfilePaths(
	ctx context.Context, q tracestore.Query, sel tracestore.Selection, o tracestore.PathOptions,
) (tracestore.PathProfile, error) {
	return callpath.Profile(ctx, e, q, sel, o)
}
