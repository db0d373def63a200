package tracestore

import (
	"context"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TraceVersion describes the state of a trace in a store.
type TraceVersion struct {
	// Number is another one after spans were added or deleted. It may also change without that. If
	// it is 0, the store has no spans of the trace; otherwise it may have none after deletions.
	Number uint64
	// Stored is when the last span was stored, to the second. It is zero if the store does not know
	// it, or if it was more than a minute ago.
	Stored time.Time
}

// Versioner is implemented by stores that can tell how large a trace is and whether it has changed
// without reading it.
type Versioner interface {
	// TraceVersion returns the version of a trace. A reader that starts later sees at least the
	// spans of this version. A DamagedError means that the version is not known.
	TraceVersion(ctx context.Context, tenant string, id otlpdata.TraceID) (TraceVersion, error)
	// TraceSpans returns about the number of spans of a large trace: hardly more, and not much
	// less. For a small or unknown trace, or if it cannot know without much work, it returns 0.
	// Callers reserve memory for the trace before they read it.
	TraceSpans(ctx context.Context, tenant string, id otlpdata.TraceID) (int, error)
}
