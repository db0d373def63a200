package tracestore

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Outliner is implemented by stores that know what it takes to draw a trace without reading its spans whole.
type Outliner interface {
	// Outline calls take once with the spans of a trace, in any order and without duplicates; not where there is no such trace. Of one with
	// more than most spans, if that is above 0, it gives some, more than most. What it gives is valid during the call. Before that, and
	// again as it reads on, it calls hold with the number of spans that it has in memory, and the bytes of their names. An error of take
	// is returned, one of hold maybe wrapped. The error otherwise says that the trace, or a part of it, cannot be read.
	Outline(
		ctx context.Context, tenant string, id otlpdata.TraceID, most int,
		hold func(spans, names int) error, take func([]SummarySpan) error,
	) error
}
