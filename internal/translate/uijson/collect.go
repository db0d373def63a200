package uijson

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// span is a span before it is written: encoded, but for what adjusters may change when they have seen all spans of the trace.
type span struct {
	traceID    otlpdata.TraceID
	id, parent otlpdata.SpanID
	links      []link
	kind       int32
	flags      uint32
	text       []byte // two pieces of its JSON, head and tail
	head       int    // length of the first
	warnings   []string
	// Nanoseconds, which the JSON rounds: start, duration, and the times of the events.
	start, duration uint64
	eventTimes      []uint64
}

// link is a link of a span. childOf is its type; others follow from what they link to.
type link struct {
	traceID otlpdata.TraceID
	spanID  otlpdata.SpanID
	childOf bool
}

// errFull ends a walk when the trace has more spans than are shown.
var errFull = errors.New("trace is full")

// collector gathers the spans of a trace from batches, and their processes in order of first use.
type collector struct {
	opt       Options
	spans     []span
	cut       bool // there are more spans
	processes []string
	known     map[string]int          // encoded process -> index
	count     map[otlpdata.SpanID]int // how many spans have an id
	texts     texts

	// The current resource and scope.
	service     string
	processTags []otlpdata.KeyValue
	process     int // its index, or notListed until a span needs it
	scopeTags   []otlpdata.KeyValue

	// Scratch.
	tags    []otlpdata.KeyValue
	encoded []byte // a process
}

const notListed = -1

var _ otlpdata.Visitor = (*collector)(nil)

var collectors = sync.Pool{New: func() any { return &collector{known: make(map[string]int), count: make(map[otlpdata.SpanID]int)} }}

// release forgets the trace. What a large one needed is left to the garbage collector.
func (c *collector) release() {
	const keep = 1024 // spans
	if cap(c.spans) > keep || len(c.known) > keep || cap(c.processTags) > keep || cap(c.tags) > keep || cap(c.encoded) > textChunk {
		return
	}
	clear(c.spans)
	clear(c.processes)
	clear(c.known)
	clear(c.count)
	clear(c.processTags[:cap(c.processTags)])
	clear(c.scopeTags[:cap(c.scopeTags)])
	clear(c.tags[:cap(c.tags)])
	*c = collector{
		spans: c.spans[:0], processes: c.processes[:0], known: c.known, count: c.count, texts: c.texts[:0],
		processTags: c.processTags[:0], scopeTags: c.scopeTags[:0], tags: c.tags[:0], encoded: c.encoded[:0],
	}
	collectors.Put(c)
}

// room makes room for n more spans, but for no more than are shown.
func (c *collector) room(n int) {
	if c.opt.MaxSpans > 0 {
		n = min(n, c.opt.MaxSpans-len(c.spans))
	}
	c.spans = slices.Grow(c.spans, n)
}

func (c *collector) add(b *otlpdata.Batch) error {
	segments, err := b.Segments()
	if err != nil {
		return err
	}
	for _, s := range segments {
		if err := otlpdata.Walk(s, c); err != nil && !errors.Is(err, errFull) {
			return err
		}
	}
	return nil
}

// Resource notes the process.
func (c *collector) Resource(r *otlpdata.Resource) error {
	c.service, c.process = r.Service, notListed
	c.processTags = c.processTags[:0]
	for _, kv := range r.Attributes {
		if kv.Key != "service.name" {
			c.processTags = append(c.processTags, kv)
		}
	}
	nameInvalidKeys(c.processTags)
	if !c.opt.Raw {
		adjustTags(c.processTags)
	}
	return nil
}

// Scope notes the tags that every span of the scope begins with.
func (c *collector) Scope(s *otlpdata.Scope) error {
	c.scopeTags = appendTextTag(c.scopeTags[:0], "otel.scope.name", s.Name)
	c.scopeTags = appendTextTag(c.scopeTags, "otel.scope.version", s.Version)
	return nil
}

// Span keeps a span.
func (c *collector) Span(s *otlpdata.Span) error {
	if c.opt.MaxSpans > 0 && len(c.spans) >= c.opt.MaxSpans {
		c.cut = true
		return errFull
	}
	c.spans = append(c.spans, span{
		traceID: s.TraceID, id: s.SpanID, parent: s.ParentID, kind: s.Kind, start: s.Start, links: links(s.Links),
		flags: s.NativeFlags(),
	})
	out := &c.spans[len(c.spans)-1]
	var mended bool
	if out.duration, mended = s.Duration(); mended {
		out.warnings = append(out.warnings, fmt.Sprintf(
			"Negative duration detected, sanitizing end timestamp. Original end timestamp: %s, adjusted to: %s",
			timestamp(s.End), timestamp(s.Start+out.duration)))
	}
	c.encode(out, s)
	c.count[s.SpanID]++
	return nil
}

// encode makes the text of a span, and adds the warnings that come up.
func (c *collector) encode(out *span, s *otlpdata.Span) {
	tags := c.spanTags(s, &out.warnings)
	process := 0
	if c.opt.Raw {
		process = c.processIndex()
	} else {
		tags, process = c.moveLibraryTags(tags, &out.warnings)
		adjustTags(tags)
	}
	dst := c.texts.begin()
	dst = append(appendText(append(dst, `,"operationName":`...), s.Operation()), `,"references":`...)
	out.head = len(dst)
	dst = appendMicros(append(dst, `,"startTime":`...), out.start)
	dst = appendMicros(append(dst, `,"duration":`...), out.duration)
	dst = appendTags(append(dst, `,"tags":`...), tags)
	dst = append(dst, `,"logs":[`...)
	for i := range s.Events {
		e := &s.Events[i]
		out.eventTimes = append(out.eventTimes, e.Time)
		dst = appendMicros(append(comma(dst, i), `{"timestamp":`...), e.Time)
		dst = append(appendTags(append(dst, `,"fields":`...), c.eventFields(e)), '}')
	}
	dst = append(appendProcessID(append(dst, `],"processID":"`...), process), '"')
	out.text = c.texts.end(dst)
}

// processIndex returns the index of the current resource's process.
func (c *collector) processIndex() int {
	if c.process == notListed {
		c.process = c.listProcess(c.processTags)
	}
	return c.process
}

// listProcess finds or adds the process of the current service with these tags.
func (c *collector) listProcess(tags []otlpdata.KeyValue) int {
	c.encoded = appendProcess(c.encoded[:0], c.service, tags)
	i, ok := c.known[string(c.encoded)]
	if !ok {
		p := string(c.encoded)
		i = len(c.processes)
		c.known[p] = i
		c.processes = append(c.processes, p)
	}
	return i
}

func timestamp(ns uint64) string { return time.Unix(0, int64(ns)).UTC().String() }

func links(in []otlpdata.Link) []link {
	if len(in) == 0 {
		return nil
	}
	out := make([]link, len(in))
	for i := range in {
		refType, _ := otlpdata.Get(in[i].Attributes, "opentracing.ref_type")
		out[i] = link{traceID: in[i].TraceID, spanID: in[i].SpanID, childOf: refType.Str() == "child_of"}
	}
	return out
}
