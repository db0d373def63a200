package otlpdata

import "fmt"

// Limits bound what one request may hold. Zero means the default of [DefaultLimits]; they cannot be switched off.
type Limits struct {
	// Bytes is the greatest size of the encoded request, in bytes.
	Bytes int
	// Spans is the greatest number of spans in the request, and of resources and scopes together.
	Spans int
	// Depth is how deep attribute values may nest: 1 is a scalar, 2 an array of scalars. It is at most 10,000, since values are read
	// by recursion.
	Depth int
	// Items is the greatest length of one list: the attributes of a resource, a scope, a span or of all its events and links together,
	// and the events and the links of a span. It bounds the memory of a walk, for which an empty attribute of two bytes is a whole one.
	Items int
}

// maxDepth bounds the recursion over nested values where nobody else does.
const maxDepth = 10_000

// DefaultLimits returns the limits that hold where nothing else is configured: 64 MiB, 500,000 spans, depth 64,
// 262,144 items.
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

// LimitError says that a request is well-formed but exceeds a limit. TooLarge tells size (the sender may split the request) from
// shape (nothing helps).
type LimitError struct {
	Limit    string // what is limited, in the user's words
	Max      int
	TooLarge bool
}

// Error names the limit and its value.
func (e *LimitError) Error() string { return fmt.Sprintf("otlp: %s: more than %d", e.Limit, e.Max) }

func errTooManyBytes(max int) error {
	return &LimitError{Limit: "request size in bytes", Max: max, TooLarge: true}
}
func errTooManySpans(max int) error {
	return &LimitError{Limit: "spans in one request", Max: max, TooLarge: true}
}
func errTooManyGroups(max int) error {
	return &LimitError{Limit: "resources and scopes in one request", Max: max, TooLarge: true}
}
func errTooManyItems(max int) error {
	return &LimitError{Limit: "attributes, events or links in one list", Max: max}
}
func errTooDeep(max int) error { return &LimitError{Limit: "nesting of attribute values", Max: max} }
