package adjust

import (
	"math"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// ClockSpan holds the fields of a span that the correction of clock differences needs.
type ClockSpan struct {
	ID, Parent      otlpdata.SpanID
	Start, Duration uint64 // nanoseconds; Duration as corrected by otlpdata.Span.Duration
	Kind            int32
	Host            uint32 // spans with the same number have the same host; 0: unknown
}

// AlignClocks calls visit with the index of each span of a trace, without duplicates, whose clock
// it corrects, and with the nanoseconds to add to its times. If it does not correct a span because
// the limit is exceeded or because of its id, shift is 0 and problem is the warning. A limit of 0
// sets no limit.
//
// Walk corrects as Jaeger does: it moves a span into the middle of its parent, further than the
// clocks are known to differ. AlignClocks moves a span by the smallest shift that puts it inside
// its parent. A span that starts before its parent moves to the start of the parent. A span that
// ends after its parent on another host moves to the end of the parent, unless it is longer or
// processes a message. Descendants on the same host move along. If a host is not known, only early
// starts are corrected. The web UI corrects files in the same way (ui/src/trace/files/skew.ts);
// both are tested with the same traces.
func AlignClocks(spans []ClockSpan, limit time.Duration, visit func(at int, shift int64, problem string)) {
	p := plans.Get().(*plan)
	defer p.release()
	p.least = true
	if limit == 0 {
		limit = math.MaxInt64
	}
	for i := range spans {
		p.addNode(spans[i].node())
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

// IsSkewed reports whether AlignClocks would move a span relative to its parent.
func IsSkewed(parent, child *ClockSpan) bool {
	known := child.Host != 0 && parent.Host != 0
	if known && child.Host == parent.Host || !known && child.Start >= parent.Start {
		return false
	}
	p, c := parent.node(), child.node()
	return leastSkew(&p, &c) != 0
}

func (s *ClockSpan) node() node {
	return node{id: s.ID, parent: s.Parent, start: s.Start, end: later(s.Start, s.Duration), host: int32(s.Host), side: sideOf(s.Kind)}
}
