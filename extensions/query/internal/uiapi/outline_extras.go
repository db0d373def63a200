package uiapi

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// outlineExtras holds fields that only some spans of an outline have.
type outlineExtras struct {
	peer     int32 // index in outline.peerNames until resolvePeers, then in outline.services; -1 for none
	links    int32
	from, to int32 // range of outline.events
}

// outlineEvent is an event of a span.
type outlineEvent struct {
	time      uint64
	name      int32
	exception bool
}

// exceptionEvent is the name of events that describe exceptions, in OpenTelemetry's semantic
// conventions.
const exceptionEvent = "exception"

// addExtras adds the extras of a span and returns outlineSpan.extras.
func (o *outline) addExtras(x *tracestore.SpanExtras) int32 {
	if x == nil {
		return 0
	}
	out := outlineExtras{peer: -1, links: int32(x.Links), from: int32(len(o.events))}
	if x.Peer != "" {
		out.peer = o.peerNames.number(x.Peer)
	}
	for i := range x.Events {
		e := &x.Events[i]
		name := e.Name
		o.events = append(o.events, outlineEvent{e.Time, o.names.number(name), name == exceptionEvent})
	}
	out.to = int32(len(o.events))
	o.extras = append(o.extras, out)
	return int32(len(o.extras))
}

// extrasOf returns the extras of a span, or nil.
func (o *outline) extrasOf(s *outlineSpan) *outlineExtras {
	if s.extras == 0 {
		return nil
	}
	return &o.extras[s.extras-1]
}

// peerName returns the name that a span gives its peer, or "".
func (o *outline) peerName(s *outlineSpan) string {
	if x := o.extrasOf(s); x != nil && x.peer >= 0 {
		return o.peerNames.words[x.peer]
	}
	return ""
}

// resolvePeers keeps the peers of spans that are calls to a peer, adds them to the services, and
// removes the peers of all other spans. Parents must be resolved.
func (o *outline) resolvePeers(spans []storequery.CallSpan, sharedIDs bool) {
	if len(o.peerNames.words) == 0 {
		return
	}
	isCall := make([]bool, len(o.spans))
	if sharedIDs {
		var finder storequery.PeerCallFinder
		finder.Each(spans, func(at int) { isCall[at] = true })
	} else { // the same, without another index of all ids
		for i := range o.spans {
			s := &o.spans[i]
			isCall[i] = s.parent != s.id || s.id.IsZero()
		}
		for i := range o.spans {
			if p := o.spans[i].parentIndex; p >= 0 {
				isCall[p] = false
			}
		}
	}
	for i := range o.spans {
		switch x := o.extrasOf(&o.spans[i]); {
		case x == nil || x.peer < 0:
		case isCall[i]:
			x.peer = o.services.number(o.peerNames.words[x.peer])
		default:
			x.peer = -1
		}
	}
}

// sparse is a column for some of the spans: their indexes in the response and their values.
type sparse struct {
	name  string
	value string // name of the list of values
	spans []int32
	of    func(dst []byte, i int) []byte // appends value i
}

// appendSparse appends columns as members of an object. A column without values is omitted.
func appendSparse(dst []byte, c *sparse, spill spill) (_ []byte, err error) {
	if len(c.spans) == 0 {
		return dst, nil
	}
	dst = append(httpapi.AppendMember(dst, c.name), `{"span":[`...)
	span := func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(c.spans[i]), 10) }
	if dst, err = appendList(dst, len(c.spans), span, spill); err != nil {
		return dst, err
	}
	dst = append(append(append(dst, `],"`...), c.value...), `":[`...)
	if dst, err = appendList(dst, len(c.spans), c.of, spill); err != nil {
		return dst, err
	}
	return append(dst, "]}"...), nil
}

// appendList appends n values with commas between them.
func appendList(dst []byte, n int, value func(dst []byte, i int) []byte, spill spill) (_ []byte, err error) {
	for i := range n {
		if dst, err = spill(value(httpapi.Comma(dst, i), i)); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendExtras appends the events, links and peers of the spans.
func (o *outline) appendExtras(dst []byte, order []int32, spill spill) (_ []byte, err error) {
	links, peers := sparse{name: "links", value: "count"}, sparse{name: "peers", value: "service"}
	var linkCounts, peerServices []int32
	links.of = func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(linkCounts[i]), 10) }
	peers.of = func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(peerServices[i]), 10) }
	for _, at := range order {
		s := &o.spans[at]
		x := o.extrasOf(s)
		if x == nil {
			continue
		}
		if x.links > 0 {
			links.spans, linkCounts = append(links.spans, s.answerIndex), append(linkCounts, x.links)
		}
		if x.peer >= 0 {
			peers.spans, peerServices = append(peers.spans, s.answerIndex), append(peerServices, x.peer)
		}
	}
	if dst, err = o.appendEvents(dst, order, spill); err != nil {
		return dst, err
	}
	if dst, err = appendSparse(dst, &links, spill); err != nil {
		return dst, err
	}
	return appendSparse(dst, &peers, spill)
}

// placedEvent is an event with the index of its span in the response, and its time relative to the
// start of the span.
type placedEvent struct {
	span, name int32
	time       int64
	exception  bool
}

// appendEvents appends the events by span and time.
func (o *outline) appendEvents(dst []byte, order []int32, spill spill) (_ []byte, err error) {
	if len(o.events) == 0 {
		return dst, nil
	}
	list := make([]placedEvent, 0, len(o.events))
	for _, at := range order {
		if x := o.extrasOf(&o.spans[at]); x != nil {
			list = o.placeEvents(list, &o.spans[at], o.events[x.from:x.to])
		}
	}
	dst = append(dst, `,"events":{`...)
	for _, c := range []struct {
		begin string
		value func(*placedEvent) int64
	}{
		{`"span":[`, func(e *placedEvent) int64 { return int64(e.span) }},
		{`],"time":[`, func(e *placedEvent) int64 { return e.time }},
		{`],"name":[`, func(e *placedEvent) int64 { return int64(e.name) }},
	} {
		value := func(dst []byte, i int) []byte { return strconv.AppendInt(dst, c.value(&list[i]), 10) }
		if dst, err = appendList(append(dst, c.begin...), len(list), value, spill); err != nil {
			return dst, err
		}
	}
	dst = append(dst, `],"exception":"`...)
	for i := range list {
		digit := byte('0')
		if list[i].exception {
			digit = '1'
		}
		dst = append(dst, digit)
	}
	return append(dst, `"}`...), nil
}

// placeEvents appends the events of a span by time. Events without a time are placed at the start
// of the span.
func (o *outline) placeEvents(list []placedEvent, s *outlineSpan, events []outlineEvent) []placedEvent {
	first := len(list)
	for i := range events {
		e := &events[i]
		time := int64(e.time - s.start)
		if e.time == 0 {
			time = 0
		}
		list = append(list, placedEvent{s.answerIndex, e.name, time, e.exception})
	}
	slices.SortStableFunc(list[first:], func(a, b placedEvent) int { return cmp.Compare(a.time, b.time) })
	return list
}
