package server

import (
	"errors"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server/internal/listen"
)

// RequestLimits bounds the contents of one request. The configs of receivers embed it.
type RequestLimits struct {
	MaxSpans int `yaml:"max_spans_per_request" doc:"Maximum number of spans in a request."`
	MaxItems int `yaml:"max_items_per_list" doc:"Maximum number of items in a list of attributes (tags), events (logs) or links (references). Attributes of all events and links of a span count as one list."`
}

// DefaultRequestLimits returns the defaults of package otlpdata.
func DefaultRequestLimits() RequestLimits {
	lim := otlpdata.DefaultLimits()
	return RequestLimits{MaxSpans: lim.Spans, MaxItems: lim.Items}
}

// Validate reports values that would disable a limit or refuse every request.
func (c *RequestLimits) Validate() error {
	return errors.Join(
		listen.CheckRange("max_spans_per_request", int64(c.MaxSpans), 1, math.MaxInt32),
		listen.CheckRange("max_items_per_list", int64(c.MaxItems), 1, math.MaxInt32),
	)
}

// Limits returns the limits for otlpdata. The listener limits the size in bytes.
func (c *RequestLimits) Limits() otlpdata.Limits {
	return otlpdata.Limits{Bytes: math.MaxInt, Spans: c.MaxSpans, Items: c.MaxItems}
}
