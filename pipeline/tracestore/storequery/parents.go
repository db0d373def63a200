package storequery

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// CallSpan is what counting calls needs of a span.
type CallSpan struct {
	ID, Parent      otlpdata.SpanID
	Start, Duration uint64 // nanoseconds; Duration as otlpdata.Span.Duration mends it
	Service         string // as otlpdata.ServiceName mends it
	Peer            string // see PeerOf; calls between services do without
	Kind            int32
	Failed          bool
}

// CallSpanOf returns what counting calls needs of s. It aliases strings of s.
func CallSpanOf(s tracestore.Span) CallSpan {
	ns, _ := s.Duration()
	return CallSpan{ID: s.SpanID, Parent: s.ParentID, Start: s.Start, Duration: ns, Service: s.Resource.Service, Peer: PeerOf(s.Span),
		Kind: s.Kind, Failed: s.StatusCode == otlpdata.StatusError}
}

// server reports on which side of a call the span is.
func (s *CallSpan) server() bool { return isServer(s.Kind) }

func isServer(kind int32) bool { return kind == otlpdata.KindServer || kind == otlpdata.KindConsumer }

func messaging(parent, child *CallSpan) bool {
	return parent.Kind == otlpdata.KindProducer || child.Kind == otlpdata.KindConsumer
}

// MaxSameID is how many spans that share an id with an earlier one are looked at, the earliest, to find the parent of another.
const MaxSameID = 64

// ParentFinder finds the parents of spans by the rules of [Dependencies]. The zero value is ready to use and reuses its memory. Not for
// concurrent use.
type ParentFinder struct {
	spans []CallSpan
	first map[otlpdata.SpanID]int32 // 1 + index of the earliest with an id
	next  []int32                   // by span: 1 + index of the next one with its id
	alike bool                      // some share an id
}

// Index takes the spans of a trace, which must stay as they are while Each or Parent is called, and reports whether some share an id. It
// then sorts them by their start.
func (p *ParentFinder) Index(spans []CallSpan) (shared bool) {
	p.spans = spans
	shared = p.link()
	if p.alike = shared; shared {
		slices.SortStableFunc(spans, func(a, b CallSpan) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), slices.Compare(a.ID[:], b.ID[:]))
		})
		p.link()
	}
	return shared
}

// Each calls visit with each span that was taken, among which are no duplicates, and with its parent, nil where that is not among them.
func (p *ParentFinder) Each(visit func(span, parent *CallSpan)) {
	for i := range p.spans {
		var parent *CallSpan
		if at := p.Parent(i); at >= 0 {
			parent = &p.spans[at]
		}
		visit(&p.spans[i], parent)
	}
	p.spans = nil
}

func (p *ParentFinder) link() (shared bool) {
	const keep = 1 << 12 // spans whose map is worth clearing
	if p.first == nil || len(p.next) > keep {
		p.first = make(map[otlpdata.SpanID]int32, len(p.spans))
	}
	clear(p.first)
	p.next = slices.Grow(p.next[:0], len(p.spans))[:len(p.spans)]
	for i := len(p.spans) - 1; i >= 0; i-- {
		id := p.spans[i].ID
		p.next[i] = p.first[id]
		shared = shared || p.next[i] > 0
		p.first[id] = int32(i) + 1
	}
	return shared
}

// Parent returns which span is the parent of another, by their places among those that were taken, as Take left them: below 0 where it is
// not among them.
func (p *ParentFinder) Parent(at int) int {
	s := &p.spans[at]
	if p.alike && s.server() {
		if client := p.among(p.first[s.ID], at, func(o *CallSpan) bool { return !o.server() }); client >= 0 {
			return client
		}
	}
	if s.Parent.IsZero() {
		return -1
	}
	first := p.first[s.Parent]
	if i := p.among(first, at, func(o *CallSpan) bool { return o.Service == s.Service }); i >= 0 {
		return i
	}
	if i := p.among(first, at, (*CallSpan).server); i >= 0 {
		return i
	}
	return p.among(first, at, func(*CallSpan) bool { return true })
}

// among returns the place of the earliest span that will do, from next on among those with its id, which is not the one at self, or a
// number below 0.
func (p *ParentFinder) among(next int32, self int, will func(*CallSpan) bool) int {
	for n := 0; next > 0 && n <= MaxSameID; n++ {
		i := int(next - 1)
		if i != self && will(&p.spans[i]) {
			return i
		}
		next = p.next[i]
	}
	return -1
}

// CountCalls returns the calls among the spans of one tenant in batches; duplicates count once. It is the reference for [Dependencies].
// The error says that a batch cannot be read.
func CountCalls(from, to time.Time, batches ...*otlpdata.Batch) ([]tracestore.Edge, error) {
	traces, err := callSpans(batches)
	if err != nil {
		return nil, fmt.Errorf("counting calls: %w", err)
	}
	var calls CallCounter
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok {
		return nil, nil
	}
	var parents ParentFinder
	for _, spans := range traces {
		parents.Index(spans)
		parents.Each(func(span, parent *CallSpan) {
			if parent != nil && span.Start >= first && span.Start <= last {
				calls.AddCall(parent, span)
			}
		})
	}
	return calls.Edges(), nil
}

// callSpans returns the spans of batches by trace, without duplicates.
func callSpans(batches []*otlpdata.Batch) (map[otlpdata.TraceID][]CallSpan, error) {
	seen := NewDedup()
	traces := make(map[otlpdata.TraceID][]CallSpan)
	for _, b := range batches {
		err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
			if seen.First(s) {
				traces[s.TraceID] = append(traces[s.TraceID], CallSpanOf(s))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return traces, nil
}
