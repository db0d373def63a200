package tracestore

// Graph holds the calls between services.
type Graph struct {
	// Edges are sorted by parent, child and messaging. Each has at least one call.
	Edges []Edge
	// Reasons says why some calls within the window are not counted.
	Reasons
}

// Edge counts the calls from one service to another or to itself.
type Edge struct {
	Parent, Child string
	Messaging     bool   // the parent is a producer or the child a consumer
	Calls, Errors uint64 // Errors counts the calls whose span has the status error
	// Duration is the sum of the durations of the child spans in nanoseconds, as corrected by
	// otlpdata.Span.Duration. It is the maximum uint64 if the sum overflows.
	Duration uint64
}
