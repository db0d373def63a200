package tracestore

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Outliner is implemented by stores that can return what is needed to draw a trace without reading
// its spans in full.
type Outliner interface {
	// Outline calls take once with the spans of a trace, in any order and without duplicates. It
	// does not call take if the trace does not exist. If limit is above 0 and the trace has more
	// than limit spans, take gets a part of them that is larger than limit. The spans are valid
	// only during the call.
	//
	// Before that, and repeatedly while it reads, Outline calls hold with the number of spans that
	// it holds in memory and the bytes of their names and Extras. An error of take is returned, and
	// an error of hold is returned, possibly wrapped. A DamagedError after the call of take, if
	// there is one, means that other spans of the trace cannot be read.
	Outline(
		ctx context.Context, tenant string, id otlpdata.TraceID, limit int,
		hold func(spans, textBytes int) error, take func([]SummarySpan) error,
	) error
}
