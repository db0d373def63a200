package uijson

import (
	"errors"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// span is what the JSON says of a span, before it is written: tags and logs as they are listed, ids as adjusters may change them.
// Its strings alias the batch.
type span struct {
	traceID    otlpdata.TraceID
	id, parent otlpdata.SpanID
	links      []link
	kind       int32
	sampled    bool
	name       string
	start      uint64 // nanoseconds since the Unix epoch
	duration   uint64 // nanoseconds
	tags       []otlpdata.KeyValue
	logs       []event
	process    int // index into collector.processes
	warnings   []string
}

// link is a link of a span. childOf is its type; others follow from what they link to.
type link struct {
	traceID otlpdata.TraceID
	spanID  otlpdata.SpanID
	childOf bool
}

type event struct {
	time   uint64 // nanoseconds since the Unix epoch
	fields []otlpdata.KeyValue
}

// errFull ends a walk when the trace has more spans than are shown.
var errFull = errors.New("trace is full")

// collector gathers the spans of a trace from batches, and their processes in order of first use.
type collector struct {
	opt       Options
	spans     []span
	cut       bool // there are more spans
	processes []string
	known     map[string]int // encoded process -> index

	process   string // the current resource, encoded
	scopeTags []otlpdata.KeyValue
}

var _ otlpdata.Visitor = (*collector)(nil)

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
	tags := make([]otlpdata.KeyValue, 0, len(r.Attributes))
	for _, kv := range r.Attributes {
		if kv.Key != "service.name" {
			tags = append(tags, kv)
		}
	}
	tags = appendAttributes(tags[:0], tags)
	if !c.opt.Raw {
		sortTags(tags)
	}
	c.process = string(appendProcess(nil, r.Service, tags))
	return nil
}

// Scope notes the tags that every span of the scope begins with.
func (c *collector) Scope(s *otlpdata.Scope) error {
	c.scopeTags = appendText(c.scopeTags[:0], "otel.scope.name", s.Name)
	c.scopeTags = appendText(c.scopeTags, "otel.scope.version", s.Version)
	return nil
}

// Span keeps a span.
func (c *collector) Span(s *otlpdata.Span) error {
	if c.opt.MaxSpans > 0 && len(c.spans) >= c.opt.MaxSpans {
		c.cut = true
		return errFull
	}
	out := span{
		traceID: s.TraceID, id: s.SpanID, parent: s.ParentID, kind: s.Kind, name: s.Operation(), start: s.Start,
		// Only this bit means the same in OTLP and here: the others would be read as debug and firehose.
		sampled: s.Flags&1 != 0,
		process: c.processIndex(),
	}
	var mended bool
	if out.duration, mended = s.Duration(); mended {
		out.warnings = append(out.warnings, fmt.Sprintf(
			"Negative duration detected, sanitizing end timestamp. Original end timestamp: %s, adjusted to: %s",
			timestamp(s.End), timestamp(s.Start+out.duration)))
	}
	out.tags, out.warnings = c.tags(s, out.warnings)
	out.logs = logs(s.Events)
	out.links = links(s.Links)
	c.spans = append(c.spans, out)
	return nil
}

func (c *collector) processIndex() int {
	i, ok := c.known[c.process]
	if !ok {
		i = len(c.processes)
		c.known[c.process] = i
		c.processes = append(c.processes, c.process)
	}
	return i
}

func timestamp(ns uint64) string { return time.Unix(0, int64(ns)).UTC().String() }

func logs(events []otlpdata.Event) []event {
	if len(events) == 0 {
		return nil
	}
	out := make([]event, len(events))
	for i := range events {
		e := &events[i]
		fields := make([]otlpdata.KeyValue, 0, len(e.Attributes)+1)
		if _, ok := otlpdata.Get(e.Attributes, "event"); !ok {
			fields = appendText(fields, "event", e.Name)
		}
		out[i] = event{time: e.Time, fields: appendAttributes(fields, e.Attributes)}
	}
	return out
}

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
