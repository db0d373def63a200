package canary

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// shownTrace is a trace in the JSON of the query API.
type shownTrace struct {
	TraceID   string             `json:"traceID"`
	Spans     []shownSpan        `json:"spans"`
	Processes map[string]process `json:"processes"`
	Warnings  []string           `json:"warnings"`
}

// shownSpan is a span of a shownTrace. Times are in microseconds.
type shownSpan struct {
	TraceID    string      `json:"traceID"`
	SpanID     string      `json:"spanID"`
	Flags      uint32      `json:"flags"`
	Operation  string      `json:"operationName"`
	References []reference `json:"references"`
	Start      uint64      `json:"startTime"`
	Duration   uint64      `json:"duration"`
	Tags       []tag       `json:"tags"`
	Logs       []logEntry  `json:"logs"`
	ProcessID  string      `json:"processID"`
	Warnings   []string    `json:"warnings"`
}

type reference struct {
	Type    string `json:"refType"`
	TraceID string `json:"traceID"`
	SpanID  string `json:"spanID"`
}

type logEntry struct {
	At     uint64 `json:"timestamp"`
	Fields []tag  `json:"fields"`
}

type process struct {
	Service string `json:"serviceName"`
	Tags    []tag  `json:"tags"`
}

// tag is a key with a value: string, bool or json.Number.
type tag struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// show returns the trace that the query API must return. Processes are keyed by service name; the
// order of spans and tags is irrelevant.
func (t *trace) show() *shownTrace {
	out := &shownTrace{TraceID: t.id.String(), Processes: map[string]process{}}
	for i := range t.spans {
		s := &t.spans[i]
		out.Spans = append(out.Spans, s.show(out.TraceID))
		out.Processes[s.service.name] = process{Service: s.service.name, Tags: shown(s.service.attributes)}
	}
	return out
}

func (s *span) show(traceID string) shownSpan {
	out := shownSpan{
		TraceID: traceID, SpanID: s.id.String(), Flags: s.flags, Operation: s.name,
		Start: s.start / 1000, Duration: (s.end - s.start) / 1000,
		Tags: append(shown(s.attributes), s.derivedTags()...), ProcessID: s.service.name,
	}
	if !s.parent.IsZero() {
		out.References = append(out.References, reference{"CHILD_OF", traceID, s.parent.String()})
	}
	for _, l := range s.links {
		out.References = append(out.References, reference{"FOLLOWS_FROM", l.traceID.String(), l.spanID.String()})
	}
	for _, e := range s.events {
		fields := append(shown(e.attributes), text("event", e.name).shown)
		out.Logs = append(out.Logs, logEntry{At: e.at / 1000, Fields: fields})
	}
	return out
}

// derivedTags returns the tags that the API derives from fields of a span.
func (s *span) derivedTags() (tags []tag) {
	add := func(key, value string) {
		if value != "" {
			tags = append(tags, text(key, value).shown)
		}
	}
	add("otel.scope.name", s.service.scope)
	add("otel.scope.version", s.service.version)
	add("span.kind", kindNames[s.kind])
	switch s.status {
	case otlpdata.StatusOK:
		add("otel.status_code", "OK")
	case otlpdata.StatusError:
		add("otel.status_code", "ERROR")
		tags = append(tags, boolean("error", true).shown)
	}
	add("otel.status_description", s.message)
	add("w3c.tracestate", s.state)
	return tags
}

var kindNames = [...]string{
	otlpdata.KindUnspecified: "", otlpdata.KindInternal: "internal", otlpdata.KindServer: "server", otlpdata.KindClient: "client",
	otlpdata.KindProducer: "producer", otlpdata.KindConsumer: "consumer",
}

func shown(attributes []attribute) []tag {
	out := make([]tag, len(attributes))
	for i, a := range attributes {
		out[i] = a.shown
	}
	return out
}
