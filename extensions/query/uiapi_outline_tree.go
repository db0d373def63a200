package query

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Flags of a span in an outline. Times are as they were recorded: a page that evens out clocks does so by flagEarly.
const (
	flagError  = 1 << iota // the status is error
	flagRoot               // it has no parent
	flagOrphan             // its parent is not in the trace, or leads back to it
	flagEarly              // it starts before its parent
)

// outline is a trace of which only what is drawn is kept.
type outline struct {
	most     int  // spans
	cut      bool // there are more
	spans    []outlineSpan
	services dictionary
	names    dictionary
	service  int32 // of the resource that the walk is at
}

// outlineSpan is a span. Others are meant by their places in outline.spans.
type outlineSpan struct {
	start, duration uint64
	id, parent      otlpdata.SpanID
	name, service   int32
	above           int32 // the parent, -1: none
	first, next     int32 // child that is not yet in order, and the one behind this of the same parent; -1: none
	place           int32 // in the answer
	kind, flags     uint8
}

// dictionary numbers words in the order of their first appearance.
type dictionary struct {
	words []string
	index map[string]int32
}

// outlineCost is how many bytes it takes, about, to make an outline of a span: what the store gives, outlineSpan, and what parents are found by.
const outlineCost = 320

func newOutline(most int) *outline {
	return &outline{most: most, services: dictionary{index: map[string]int32{}}, names: dictionary{index: map[string]int32{}}}
}

func (d *dictionary) number(word string) int32 {
	n, ok := d.index[word]
	if !ok {
		word = strings.Clone(word)
		n = int32(len(d.words))
		d.words = append(d.words, word)
		d.index[word] = n
	}
	return n
}

var errCutOutline = errors.New("the trace has more spans than are shown")

// take reads the spans of a trace.
func (o *outline) take(pieces []*otlpdata.Batch) error {
	spans := 0
	for _, b := range pieces {
		spans += b.Len()
	}
	o.spans = make([]outlineSpan, 0, min(spans, o.most))
	for _, b := range pieces {
		segments, err := b.Segments()
		if err != nil {
			return fmt.Errorf("reading a trace: %w", err)
		}
		for _, s := range segments {
			err := otlpdata.Walk(s, o)
			if o.cut = errors.Is(err, errCutOutline); o.cut {
				return nil
			}
			if err != nil {
				return fmt.Errorf("reading a trace: %w", err)
			}
		}
	}
	return nil
}

// Resource implements otlpdata.Visitor.
func (o *outline) Resource(r *otlpdata.Resource) error {
	o.service = o.services.number(r.Service)
	return nil
}

// Scope implements otlpdata.Visitor.
func (o *outline) Scope(*otlpdata.Scope) error { return nil }

// Span implements otlpdata.Visitor.
func (o *outline) Span(s *otlpdata.Span) error {
	if len(o.spans) >= o.most {
		return errCutOutline
	}
	ns, _ := s.Duration()
	o.add(&tracestore.SummarySpan{
		ID: s.SpanID, Parent: s.ParentID, Start: s.Start, Duration: ns, Name: s.Operation(), Kind: s.Kind,
		Failed: s.StatusCode == otlpdata.StatusError,
	})
	return nil
}

// takeSpans takes a trace of which only this is known.
func (o *outline) takeSpans(spans []tracestore.SummarySpan) {
	if o.cut = len(spans) > o.most; o.cut {
		spans = spans[:o.most]
	}
	o.spans = make([]outlineSpan, 0, len(spans))
	service := ""
	for i := range spans {
		if s := &spans[i]; i == 0 || s.Service != service {
			service, o.service = s.Service, o.services.number(s.Service)
		}
		o.add(&spans[i])
	}
}

// add adds a span of the service at which the walk is.
func (o *outline) add(s *tracestore.SummarySpan) {
	n := outlineSpan{start: s.Start, duration: s.Duration, id: s.ID, parent: s.Parent, name: o.names.number(s.Name), service: o.service}
	if s.Kind > otlpdata.KindUnspecified && s.Kind <= otlpdata.KindConsumer {
		n.kind = uint8(s.Kind)
	}
	if s.Failed {
		n.flags = flagError
	}
	o.spans = append(o.spans, n)
}

// extent returns the first start, the last end, and how many spans failed.
func (o *outline) extent() (begin, end uint64, failed int) {
	begin = math.MaxUint64
	for i := range o.spans {
		s := &o.spans[i]
		begin = min(begin, s.start)
		end = max(end, s.start+min(s.duration, math.MaxUint64-s.start))
		failed += int(s.flags & flagError)
	}
	return begin, end, failed
}

// order finds the parents, and returns the spans in the order in which they are drawn: each before its children, and these by their start.
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
	top := o.link()
	order := make([]int32, 0, len(o.spans))
	for _, at := range top {
		order = o.below(at, order)
	}
	for at := range o.spans { // those that are left are among their own ancestors, or below such
		if o.spans[at].place < 0 {
			first := o.ring(int32(at))
			o.spans[first].above = -1
			order = o.below(first, order)
		}
	}
	for i := range o.spans {
		o.spans[i].flags |= o.flags(&o.spans[i])
	}
	return order
}

// ring returns the first of the spans that are above each other in a ring, and of which one is at or above a span. No span above that has
// a place yet.
func (o *outline) ring(at int32) int32 {
	const met = -2
	for ; o.spans[at].place != met; at = o.spans[at].above {
		o.spans[at].place = met
	}
	first := at
	for s := o.spans[at].above; s != at; s = o.spans[s].above {
		first = min(first, s)
	}
	return first
}

// link notes parents and children, and returns the spans without a parent.
func (o *outline) link() (top []int32) {
	calls := make([]storequery.CallSpan, len(o.spans))
	for i := range o.spans {
		s := &o.spans[i]
		calls[i] = storequery.CallSpan{ID: s.id, Parent: s.parent, Start: s.start, Service: o.services.words[s.service], Kind: int32(s.kind)}
		s.first, s.next, s.place = -1, -1, -1
	}
	var parents storequery.ParentFinder
	parents.Index(calls) // in the order in which it would sort them, so that places stay what they are
	for i := len(o.spans) - 1; i >= 0; i-- {
		s := &o.spans[i]
		if s.above = int32(parents.Parent(i)); s.above < 0 {
			s.above = -1
			top = append(top, int32(i))
			continue
		}
		parent := &o.spans[s.above]
		s.next, parent.first = parent.first, int32(i)
	}
	slices.Reverse(top)
	return top
}

// below appends a span and all below it that are not in order yet. It goes from span to span, since a trace may be deep.
func (o *outline) below(top int32, order []int32) []int32 {
	for at := top; ; {
		s := &o.spans[at]
		if s.place < 0 {
			s.place = int32(len(order))
			order = append(order, at)
		}
		switch child := s.first; {
		case child >= 0:
			if s.first = o.spans[child].next; o.spans[child].place < 0 {
				at = child
			}
		case at == top:
			return order
		default:
			at = s.above
		}
	}
}

func (o *outline) flags(s *outlineSpan) uint8 {
	switch {
	case s.above >= 0 && s.start < o.spans[s.above].start:
		return flagEarly
	case s.above < 0 && s.parent.IsZero():
		return flagRoot
	case s.above < 0:
		return flagOrphan
	}
	return 0
}
