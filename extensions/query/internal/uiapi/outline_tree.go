package uiapi

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Flags of a span in an outline. Times are not adjusted; a page that corrects clock skew uses
// flagEarly.
const (
	flagError  = 1 << iota // the status is error
	flagRoot               // the span has no parent
	flagOrphan             // the parent is not in the trace, or is a descendant
	flagEarly              // the span starts before its parent
)

// outline is the part of a trace that is drawn.
type outline struct {
	maxSpans int
	maxSkew  time.Duration // core.Limits.ClockSkew
	cut      bool          // the trace has more spans
	spans    []outlineSpan
	services dictionary
	names    dictionary
	service  int32 // index of the service of the current resource

	extras    []outlineExtras
	events    []outlineEvent
	peerNames dictionary // of all spans that name a peer; the response has only the ones of calls

	incomplete tracestore.Reasons // about spans that cannot be read

	// Set by arrange.

	arranged   []int32 // indexes of spans in the order of the response
	begin, end uint64
	lastEnd    uint64 // the last end of a span that is not in the future
	failed     int
	growing    bool
	stored     time.Time          // when the last span was stored, zero if unknown
	sharedIDs  bool               // some spans have the same id
	shifts     []int64            // by span: clock correction; nil: none
	warnings   map[int32][]string // by span
}

// outlineSpan is a span. It refers to other spans by their index in outline.spans.
type outlineSpan struct {
	start, duration uint64
	id, parent      otlpdata.SpanID
	name, service   int32
	parentIndex     int32 // -1 if there is none
	first, next     int32 // first child that is not placed yet, and next sibling; -1 if there is none
	answerIndex     int32 // index in the response
	extras          int32 // 1 + index in outline.extras, 0 for none
	host            uint32
	kind, flags     uint8
	reversed        bool
}

// dictionary numbers words in the order of their first appearance.
type dictionary struct {
	words []string
	index map[string]int32
}

// outlineCost is the approximate number of bytes per span that an outline takes: the data of the
// store, outlineSpan, and the index of parents.
const outlineCost = 384

func newOutline(l core.Limits) *outline { return &outline{maxSpans: l.TraceSize, maxSkew: l.ClockSkew} }

// number returns the index of a word, which it copies when it is new.
func (d *dictionary) number(word string) int32 {
	n, ok := d.index[word]
	if !ok {
		if d.index == nil {
			d.index = make(map[string]int32)
		}
		word = strings.Clone(word)
		n = int32(len(d.words))
		d.words = append(d.words, word)
		d.index[word] = n
	}
	return n
}

// addSummaries adds the spans of a trace.
func (o *outline) addSummaries(spans []tracestore.SummarySpan) {
	if o.cut = len(spans) > o.maxSpans; o.cut {
		spans = spans[:o.maxSpans]
	}
	o.spans = make([]outlineSpan, 0, len(spans))
	service := ""
	for i := range spans {
		if s := &spans[i]; i == 0 || s.Service != service {
			service, o.service = s.Service, o.services.number(s.Service)
		}
		o.addSpan(&spans[i])
	}
}

// addSpan adds a span of the current service.
func (o *outline) addSpan(s *tracestore.SummarySpan) {
	n := outlineSpan{start: s.Start, duration: s.Duration, id: s.ID, parent: s.Parent, name: o.names.number(s.Name),
		service: o.service, extras: o.addExtras(s.Extras), host: s.Host, reversed: s.Reversed}
	if s.Kind > otlpdata.KindUnspecified && s.Kind <= otlpdata.KindConsumer {
		n.kind = uint8(s.Kind)
	}
	if s.Failed {
		n.flags = flagError
	}
	o.spans = append(o.spans, n)
}

// arrange orders the spans and determines the properties of the whole trace. now is the current
// time.
func (o *outline) arrange(now time.Time) {
	o.arranged = o.order()
	o.alignClocks()
	if o.stored.After(now.Add(growingFor)) { // by the clock of another host
		o.stored = time.Time{}
	}
	o.measure(uint64(now.Add(growingFor).UnixNano()))
	o.growing = o.growsUntil().After(now)
}

// measure finds the first start, the last end, the last end before a time, and the number of failed
// spans. Spans without a start time are set to the first start, or stay at 0 if all are without.
func (o *outline) measure(future uint64) {
	o.begin = math.MaxUint64
	for i := range o.spans {
		o.begin = min(o.begin, o.spans[i].start-1) // 0 is the maximum
	}
	o.begin++
	for i := range o.spans {
		s := &o.spans[i]
		s.start = max(s.start, o.begin)
		end := s.start + min(s.duration, math.MaxUint64-s.start)
		o.end = max(o.end, end)
		if end <= future {
			o.lastEnd = max(o.lastEnd, end)
		}
		o.failed += int(s.flags & flagError)
	}
}

// order resolves the parents and returns the spans in the order in which they are drawn: parents
// before children, and children by start.
func (o *outline) order() []int32 {
	byStart := func(a, b outlineSpan) int {
		if c := cmp.Compare(a.start, b.start); c != 0 {
			return c
		}
		return slices.Compare(a.id[:], b.id[:])
	}
	if !slices.IsSortedFunc(o.spans, byStart) {
		slices.SortStableFunc(o.spans, byStart)
	}
	top := o.resolveParents()
	order := make([]int32, 0, len(o.spans))
	for _, at := range top {
		order = o.appendTree(at, order)
	}
	for at := range o.spans { // the rest are in, or descend from, a cycle of parents
		if o.spans[at].answerIndex < 0 {
			first := o.breakCycle(int32(at))
			o.spans[first].parentIndex = -1
			order = o.appendTree(first, order)
		}
	}
	for i := range o.spans {
		o.spans[i].flags |= o.flags(&o.spans[i])
	}
	return order
}

// breakCycle returns the first span of the cycle of parents that is reached from a span. None of
// its ancestors may be placed yet.
func (o *outline) breakCycle(at int32) int32 {
	const visited = -2
	for ; o.spans[at].answerIndex != visited; at = o.spans[at].parentIndex {
		o.spans[at].answerIndex = visited
	}
	first := at
	for s := o.spans[at].parentIndex; s != at; s = o.spans[s].parentIndex {
		first = min(first, s)
	}
	return first
}

// resolveParents sets parents and children, and returns the spans without a parent.
func (o *outline) resolveParents() (top []int32) {
	calls := make([]storequery.CallSpan, len(o.spans))
	for i := range o.spans {
		s := &o.spans[i]
		calls[i] = storequery.CallSpan{ID: s.id, Parent: s.parent, Start: s.start,
			Service: o.services.words[s.service], Peer: o.peerName(s), Kind: int32(s.kind)}
		s.first, s.next, s.answerIndex = -1, -1, -1
	}
	var parents storequery.ParentFinder
	sharedIDs := parents.Index(calls) // already in the order of Parents, so that indexes stay valid
	for i := len(o.spans) - 1; i >= 0; i-- {
		s := &o.spans[i]
		if s.parentIndex = int32(parents.Parent(i)); s.parentIndex < 0 {
			s.parentIndex = -1
			top = append(top, int32(i))
			continue
		}
		parent := &o.spans[s.parentIndex]
		s.next, parent.first = parent.first, int32(i)
	}
	slices.Reverse(top)
	o.resolvePeers(calls, sharedIDs)
	o.sharedIDs = sharedIDs
	return top
}

// appendTree appends a span and its descendants that are not placed yet. It does not recurse,
// because traces can be deep.
func (o *outline) appendTree(top int32, order []int32) []int32 {
	for at := top; ; {
		s := &o.spans[at]
		if s.answerIndex < 0 {
			s.answerIndex = int32(len(order))
			order = append(order, at)
		}
		switch child := s.first; {
		case child >= 0:
			if s.first = o.spans[child].next; o.spans[child].answerIndex < 0 {
				at = child
			}
		case at == top:
			return order
		default:
			at = s.parentIndex
		}
	}
}

func (o *outline) flags(s *outlineSpan) uint8 {
	switch {
	case s.parentIndex >= 0 && s.start > 0 && s.start < o.spans[s.parentIndex].start:
		return flagEarly
	case s.parentIndex < 0 && s.parent.IsZero():
		return flagRoot
	case s.parentIndex < 0:
		return flagOrphan
	}
	return 0
}
