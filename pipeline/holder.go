package pipeline

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Holder is implemented by processors whose Consume returns nil before they have passed the spans
// on, for example because they wait for the rest of a trace. Acknowledged spans of a pipeline with
// a Holder are in memory: they are lost if the process ends.
//
// The framework counts the spans that a Holder accepts as held until the Holder calls next, or
// Dropped of its [Settings]. The next of a Holder retries temporary errors for a while
// (service.limits.held_retry) and then counts the spans as dropped, because no client resends them.
// A Holder must therefore not call next while it accepts spans. Stop passes on the held spans;
// spans that remain when its context ends are counted as dropped.
type Holder interface {
	Consumer
	// Held returns the number of spans that were accepted, and neither passed on nor dropped. It is
	// called concurrently.
	Held() (spans int64)
}

// Dropper is implemented by processors and connectors that drop spans on purpose and are not a
// [Holder]. Others pass on all spans or return an error.
type Dropper interface {
	Consumer
	// ConsumeDropping is like Consume, which the framework then does not call. If the error is nil
	// or a [Partial], dropped is the number of spans of b that were dropped on purpose. It is
	// negative if more spans were passed on than b contains.
	ConsumeDropping(ctx context.Context, b *otlpdata.Batch) (dropped int, err error)
}

// Reasons for which a [Holder] drops spans: values of the label reason.
const (
	DroppedByPolicy  = "policy"    // on purpose: the configuration says so
	DroppedBySize    = "too_large" // spans of a trace that is larger than the configured maximum
	DroppedByEvicted = "evicted"   // to free memory for others, or lost by the component
	DroppedByStop    = "stopping"  // still held when the process or the processor had to stop
)
