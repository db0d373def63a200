package tracestore

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Sizer is implemented by stores that know about how large a trace is without reading it. Callers
// reserve memory for the trace before they read it.
type Sizer interface {
	// TraceSpans returns a number of spans that the trace hardly exceeds, and 0 for an unknown
	// trace.
	TraceSpans(ctx context.Context, tenant string, id otlpdata.TraceID) (int, error)
}
