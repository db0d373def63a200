package storequery

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// CallSpan holds the fields of a span that are needed to count calls.
type CallSpan struct {
	ID, Parent      otlpdata.SpanID
	Start, Duration uint64 // nanoseconds; Duration as corrected by otlpdata.Span.Duration
	Service         string // as corrected by otlpdata.ServiceName
	Peer            string // see PeerOf; not needed for calls between services
	Kind            int32
	Connection      tracestore.Connection // needed to measure edges
	Failed          bool
}

// CallSpanOf returns the CallSpan of s. It shares strings with s.
func CallSpanOf(s tracestore.Span) CallSpan {
	ns, _ := s.Duration()
	return CallSpan{ID: s.SpanID, Parent: s.ParentID, Start: s.Start, Duration: ns, Service: s.Resource.Service, Peer: PeerOf(s.Span),
		Kind: s.Kind, Failed: s.StatusCode == otlpdata.StatusError}
}

// isServer reports whether the span is on the server side of a call.
func (s *CallSpan) isServer() bool { return isServer(s.Kind) }

func isServer(kind int32) bool { return kind == otlpdata.KindServer || kind == otlpdata.KindConsumer }

func messaging(parent, child *CallSpan) bool {
	return parent.Kind == otlpdata.KindProducer || child.Kind == otlpdata.KindConsumer
}

// MaxSameID is the maximum number of spans that share an id with an earlier span and are considered
// as parents. The earliest ones are considered.
const MaxSameID = 64

// ParentFinder resolves the parents of spans by the rules of [tracestore.Edges]. The zero value is
// ready to use. A ParentFinder reuses its memory and is not safe for concurrent use.
type ParentFinder struct {
	spans []CallSpan
	first map[otlpdata.SpanID]int32 // 1 + index of the earliest span with an id
	next  []int32                   // by span: 1 + index of the next span with its id
	// sharedIDs is true if some spans share an id.
	sharedIDs bool
}

// Index indexes the spans of a trace, without duplicates. The spans must not be modified until the
// last call of Each or Parent. It reports whether some spans share an id; if so, it sorts the spans
// by start.
func (p *ParentFinder) Index(spans []CallSpan) (sharedIDs bool) {
	p.spans = spans
	sharedIDs = p.link()
	if p.sharedIDs = sharedIDs; sharedIDs {
		slices.SortStableFunc(spans, func(a, b CallSpan) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), slices.Compare(a.ID[:], b.ID[:]))
		})
		p.link()
	}
	return sharedIDs
}

// Each calls visit with each indexed span and its parent. The parent is nil if it is not among the
// spans.
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

// link fills first and next, and reports whether some spans share an id.
func (p *ParentFinder) link() (sharedIDs bool) {
	const maxReused = 1 << 12 // spans; clearing a larger map costs more than a new one
	if p.first == nil || len(p.next) > maxReused {
		p.first = make(map[otlpdata.SpanID]int32, len(p.spans))
	}
	clear(p.first)
	p.next = slices.Grow(p.next[:0], len(p.spans))[:len(p.spans)]
	for i := len(p.spans) - 1; i >= 0; i-- {
		id := p.spans[i].ID
		p.next[i] = p.first[id]
		sharedIDs = sharedIDs || p.next[i] > 0
		p.first[id] = int32(i) + 1
	}
	return sharedIDs
}

// Parent returns the index of a span's parent; both indexes are in the order of the spans after
// Index. It is negative if the parent is not among the spans.
func (p *ParentFinder) Parent(at int) int {
	s := &p.spans[at]
	if p.sharedIDs && s.isServer() {
		if client := p.find(p.first[s.ID], at, func(o *CallSpan) bool { return !o.isServer() }); client >= 0 {
			return client
		}
	}
	if s.Parent.IsZero() {
		return -1
	}
	first := p.first[s.Parent]
	if i := p.find(first, at, func(o *CallSpan) bool { return o.Service == s.Service }); i >= 0 {
		return i
	}
	if i := p.find(first, at, (*CallSpan).isServer); i >= 0 {
		return i
	}
	return p.find(first, at, func(*CallSpan) bool { return true })
}

// find follows the spans with the same id, beginning with the one at next-1, and returns the index
// of the first that is not self and for which accept is true. It returns a negative number if there
// is none.
func (p *ParentFinder) find(next int32, self int, accept func(*CallSpan) bool) int {
	for n := 0; next > 0 && n <= MaxSameID; n++ {
		i := int(next - 1)
		if i != self && accept(&p.spans[i]) {
			return i
		}
		next = p.next[i]
	}
	return -1
}

// CountCalls counts the calls among the spans of one tenant in batches; duplicates count once. It
// is the reference implementation of [tracestore.Edges]. An error means that a batch cannot
// be read.
func CountCalls(from, to time.Time, batches ...*otlpdata.Batch) ([]tracestore.Edge, error) {
	traces, err := callSpans(batches, CallSpanOf)
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

// callSpans returns the spans of batches by trace id, without duplicates.
func callSpans(batches []*otlpdata.Batch, of func(tracestore.Span) CallSpan) (map[otlpdata.TraceID][]CallSpan, error) {
	seen := NewDedup()
	traces := make(map[otlpdata.TraceID][]CallSpan)
	for _, b := range batches {
		err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
			if seen.First(s) {
				traces[s.TraceID] = append(traces[s.TraceID], of(s))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return traces, nil
}
