package tracestore

// SpanSet is an expression that chooses spans of a trace: [Select], [Both], [Either] or [Below]. A trace is found by it where it chooses a
// span. It is evaluated on the whole trace, of which duplicates count once.
type SpanSet interface{ isSpanSet() }

// Select chooses the spans on which a condition holds, among whose places there may be those of the trace (TraceDuration and the like).
type Select struct{ Where Expr }

// Both chooses what either side does where both choose a span, and nothing otherwise.
type Both struct{ Left, Right SpanSet }

// Either chooses what either side does.
type Either struct{ Left, Right SpanSet }

// Below chooses those of Spans that have one of Above among their ancestors or, if it is Direct, as their parent. Parents are those of
// [Dependencies]. A span is not its own ancestor, also where parents lead back to it.
type Below struct {
	Above, Spans SpanSet
	Direct       bool
}

func (Select) isSpanSet() {}
func (Both) isSpanSet()   {}
func (Either) isSpanSet() {}
func (Below) isSpanSet()  {}
