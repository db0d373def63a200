package tracestore

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Sizer is implemented by stores that know about how large a trace is without reading it. Callers
// reserve memory for the trace before they read it.
type Sizer interface {
	// TraceSpans returns about the number of spans of a large trace: hardly more, and not much
	// less. For a small or unknown trace it may return 0.
	TraceSpans(ctx context.Context, tenant string, id otlpdata.TraceID) (int, error)
}
