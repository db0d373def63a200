package pipeline

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Holder is implemented by processors whose Consume returns nil before they have passed the spans
// on, for example because they wait for the rest of a trace. Acknowledged spans of a pipeline with
// a Holder are in memory: they are lost if the process ends.
//
// The framework counts what a Holder accepts as held until it has called next, or Dropped of its
// [Settings]. next of a Holder tries again for a while after errors that are temporary
// (service.limits.held_retry), and then counts the spans as dropped, because no client sends
// them again; so a Holder must not wait for next where it accepts spans. Stop passes on what is
// held; what is left when its context ends is counted as dropped.
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
	// or a [Partial], dropped is the number of spans of b that were dropped on purpose. A negative
	// number says that more spans than those of b were passed on.
	ConsumeDropping(ctx context.Context, b *otlpdata.Batch) (dropped int, err error)
}

// Reasons for which a [Holder] drops spans: values of the label reason.
const (
	DroppedByPolicy  = "policy"    // on purpose: the configuration says so
	DroppedBySize    = "too_large" // spans of a trace that is larger than the configured maximum
	DroppedByEvicted = "evicted"   // to make space for others, or lost by the component
	DroppedByStop    = "stopping"  // still held when the process or the processor had to stop
)
