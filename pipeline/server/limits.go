package server

import (
	"errors"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// RequestLimits are the keys of a receiver that say how much one request may hold, for configs to embed.
type RequestLimits struct {
	MaxSpans int `yaml:"max_spans_per_request" doc:"Greatest number of spans in one request."`
	MaxItems int `yaml:"max_items_per_list" doc:"Greatest number of attributes (tags), events (logs) or links (references) in one list; all attributes of a span's events and links are one."`
}

// DefaultRequestLimits returns what otlpdata has as defaults.
func DefaultRequestLimits() RequestLimits {
	lim := otlpdata.DefaultLimits()
	return RequestLimits{MaxSpans: lim.Spans, MaxItems: lim.Items}
}

// Validate reports values that would switch a limit off or refuse everything.
func (c *RequestLimits) Validate() error {
	return errors.Join(
		checkRange("max_spans_per_request", int64(c.MaxSpans), 1, math.MaxInt32),
		checkRange("max_items_per_list", int64(c.MaxItems), 1, math.MaxInt32),
	)
}

// Limits returns the limits for otlpdata. Size is the listener's limit, and none of these.
func (c *RequestLimits) Limits() otlpdata.Limits {
	return otlpdata.Limits{Bytes: math.MaxInt, Spans: c.MaxSpans, Items: c.MaxItems}
}
