package otlpdata

import "fmt"

// Limits are the limits of one request. 0 means the value of [DefaultLimits]; limits cannot be
// disabled.
type Limits struct {
	// Bytes is the maximum size of the encoded request.
	Bytes int
	// Spans is the maximum number of spans or log records in the request, and also of resources and
	// scopes together.
	Spans int
	// Depth is the maximum nesting of attribute values: 1 allows scalars, 2 arrays of scalars.
	// Values above 10,000 count as 10,000, because values are read by recursion.
	Depth int
	// Items is the maximum length of each list: the attributes of a resource, of a scope, of a
	// span, or of all events and links of a span together; the events of a span; the links of a
	// span. It limits the memory of a walk, where an empty attribute of two bytes takes as much
	// memory as any other.
	Items int
}

// maxDepth is the highest accepted Limits.Depth.
const maxDepth = 10_000

// DefaultLimits returns the default limits: 64 MiB, 500,000 spans, depth 64, 262,144 items.
func DefaultLimits() Limits {
	return Limits{Bytes: 64 << 20, Spans: 500_000, Depth: 64, Items: 1 << 18}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	if l.Bytes > 0 {
		d.Bytes = l.Bytes
	}
	if l.Spans > 0 {
		d.Spans = l.Spans
	}
	if l.Depth > 0 {
		d.Depth = min(l.Depth, maxDepth)
	}
	if l.Items > 0 {
		d.Items = l.Items
	}
	return d
}

// LimitError is the error for a well-formed request that exceeds a limit.
type LimitError struct {
	Limit    string // the limited quantity, for users
	Max      int
	TooLarge bool // whether the size is too large, so that splitting the request helps
}

// Error returns the limit and its value.
func (e *LimitError) Error() string { return fmt.Sprintf("otlp: %s: more than %d", e.Limit, e.Max) }

func errTooManyBytes(max int) error {
	return &LimitError{Limit: "request size in bytes", Max: max, TooLarge: true}
}
func errTooManyItemsOf(s Signal, max int) error {
	return &LimitError{Limit: s.Items() + " in one request", Max: max, TooLarge: true}
}
func errTooManyGroups(max int) error {
	return &LimitError{Limit: "resources and scopes in one request", Max: max, TooLarge: true}
}
func errTooManyItems(max int) error {
	return &LimitError{Limit: "attributes, events or links in one list", Max: max}
}
func errTooDeep(max int) error { return &LimitError{Limit: "nesting of attribute values", Max: max} }
