package adjust

import (
	"math"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// ClockSpan is what the correction of clock differences needs of a span.
type ClockSpan struct {
	ID, Parent      otlpdata.SpanID
	Start, Duration uint64 // nanoseconds; Duration as corrected by otlpdata.Span.Duration
	Kind            int32
	Host            uint32 // spans with the same number have the same host; 0: unknown
}

// AlignClocks calls visit with the index of each span of a trace, without duplicates, that Walk
// corrects with a limit, and with the nanoseconds to add to its times. If Walk does not correct a
// span because the limit is exceeded or because of its id, shift is 0 and problem is the warning.
//
// A limit of 0 sets no limit. Then a span is not corrected if its host or that of its parent is not
// known and it starts after its parent: it may well end after its parent, too.
func AlignClocks(spans []ClockSpan, limit time.Duration, visit func(at int, shift int64, problem string)) {
	p := plans.Get().(*plan)
	defer p.release()
	if limit == 0 {
		limit, p.cautious = math.MaxInt64, true
	}
	for i := range spans {
		s := &spans[i]
		p.addNode(node{id: s.ID, parent: s.Parent, start: s.Start, end: later(s.Start, s.Duration), host: int32(s.Host), side: sideOf(s.Kind)})
	}
	if p.shared {
		p.separateServers()
		p.index()
	}
	p.alignClocks(limit)
	for i := range p.nodes {
		switch n := &p.nodes[i]; {
		case n.moved:
			visit(i, n.delta, "")
		case n.warning == movingTooFar || n.warning == duplicateID:
			visit(i, 0, n.text(limit))
		}
	}
}

// IsSkewed reports whether the clocks of the hosts of a span and its parent differ, so that the
// span would be moved.
func IsSkewed(parent, child *ClockSpan) bool {
	if child.Host == parent.Host && child.Host != 0 {
		return false
	}
	p := node{start: parent.Start, end: later(parent.Start, parent.Duration)}
	c := node{start: child.Start, end: later(child.Start, child.Duration)}
	return skew(&p, &c) != 0
}
