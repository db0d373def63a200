package zipkin

import (
	"cmp"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// NoServiceName is the service name that stands for an OTLP resource without a service. FromV2JSON
// and FromV2Proto remove it again.
const NoServiceName = noServiceName

// ToV2JSON translates a batch into a JSON array of v2 spans. Spans without a service get the
// service noService. Spans without a trace id or a span id, which Zipkin requires, are left out;
// rejected is their number. The error comes from encoding a batch of objects.
func ToV2JSON(b *otlpdata.Batch, noService string) (body []byte, rejected int, err error) {
	o := outgoing{noService: noService, encode: (*outSpan).appendJSON, body: make([]byte, 0, 2*b.Size())}
	o.body = append(o.body, '[')
	err = b.Walk(&o)
	return append(o.body, ']'), o.rejected, err
}

// ToV2Proto is like ToV2JSON for a ListOfSpans of zipkin.proto3.
func ToV2Proto(b *otlpdata.Batch, noService string) (body []byte, rejected int, err error) {
	o := outgoing{noService: noService, encode: (*outSpan).appendProto, body: make([]byte, 0, 2*b.Size())}
	err = b.Walk(&o)
	return o.body, o.rejected, err
}

// Spans writes v2 spans, one after the other, to any number of lists: JSON arrays or ListOfSpans.
// Resource and Scope apply to the spans that follow. It is not safe for concurrent use.
type Spans struct {
	out  outgoing
	json bool
}

// NewSpans returns a writer of JSON or protobuf. Spans without a service get the service noService.
func NewSpans(json bool, noService string) *Spans {
	w := &Spans{out: outgoing{noService: noService, encode: (*outSpan).appendProto}, json: json}
	if json {
		w.out.encode = (*outSpan).appendJSON
	}
	return w
}

// Resource sets the resource of the spans that follow.
func (w *Spans) Resource(r *otlpdata.Resource) error { return w.out.Resource(r) }

// Scope sets the scope of the spans that follow.
func (w *Spans) Scope(s *otlpdata.Scope) error { return w.out.Scope(s) }

// Append appends a span, which must have ids, to a list without its end. It starts a list that is
// empty.
func (w *Spans) Append(list []byte, s *otlpdata.Span) []byte {
	if w.json && len(list) == 0 {
		list = append(list, '[')
	}
	w.out.body = list
	w.out.Span(s) //nolint:errcheck // never fails
	list, w.out.body = w.out.body, nil
	return list
}

// End completes a list that has spans.
func (w *Spans) End(list []byte) []byte {
	if w.json {
		return append(list, ']')
	}
	return list
}

// outgoing translates a batch into v2 spans, one after the other. Data without a Zipkin field
// becomes tags and annotations, in the form that FromV2JSON and the OpenTelemetry Collector read.
type outgoing struct {
	noService string
	encode    func(*outSpan, []byte) []byte // appends a span
	body      []byte
	rejected  int

	service  string
	resource []tag // of the resource
	scope    []tag // of the scope
	span     outSpan
	keys     map[string]struct{} // keys of the span's tags, and keys that do not become tags
}

// outSpan is a v2 span. Times are in microseconds.
type outSpan struct {
	traceID             otlpdata.TraceID
	id, parent          otlpdata.SpanID
	kind                int32
	name                string
	timestamp, duration uint64
	local, remote       outEndpoint
	annotations         []annotation
	tags                []tag
	debug               bool
}

type tag struct{ key, value string }

type annotation struct {
	timestamp uint64
	value     string
}

// Tags for what OTLP has and Zipkin does not; see also v2_tags.go.
const (
	tagError             = "error"
	tagKind              = "span.kind"
	tagStatusCode        = "otel.status_code"
	tagTraceState        = "w3c.tracestate"
	tagScopeName         = "otel.scope.name"
	tagDroppedAttributes = "otel.dropped_attributes_count"
	tagDroppedEvents     = "otel.dropped_events_count"
	tagDroppedLinks      = "otel.dropped_links_count"
)

// serviceSources are the attributes that name a service, in order of preference.
var serviceSources = [...]string{serviceName, "faas.name", "k8s.deployment.name", "process.executable.name"}

// Resource implements otlpdata.Visitor.
func (o *outgoing) Resource(r *otlpdata.Resource) error {
	o.service, o.resource, o.scope = o.noService, o.resource[:0], o.scope[:0]
	source := ""
	for _, key := range serviceSources {
		if v, _ := otlpdata.Get(r.Attributes, key); v.Str() != "" {
			o.service, source = v.Str(), key
			break
		}
	}
	if source != "" && source != serviceName {
		o.resource = append(o.resource, tag{serviceNameSource, source})
	}
	for i := range r.Attributes {
		if kv := &r.Attributes[i]; kv.Key != source {
			o.resource = append(o.resource, tag{kv.Key, kv.Value.AsString()})
		}
	}
	return nil
}

// Scope implements otlpdata.Visitor.
func (o *outgoing) Scope(s *otlpdata.Scope) error {
	o.scope = o.scope[:0]
	if s.Name != "" {
		o.scope = append(o.scope, tag{tagScopeName, s.Name})
	}
	if s.Version != "" {
		o.scope = append(o.scope, tag{scopeVersion, s.Version})
	}
	for i := range s.Attributes {
		o.scope = append(o.scope, tag{s.Attributes[i].Key, s.Attributes[i].Value.AsString()})
	}
	return nil
}

// Span implements otlpdata.Visitor.
func (o *outgoing) Span(s *otlpdata.Span) error {
	if s.TraceID.IsZero() || s.SpanID.IsZero() {
		o.rejected++
		return nil
	}
	z := &o.span
	*z = outSpan{traceID: s.TraceID, id: s.SpanID, parent: s.ParentID, kind: s.Kind, name: s.Name, timestamp: s.Start / 1000,
		debug: s.NativeFlags()&otlpdata.FlagDebug != 0, annotations: z.annotations[:0], tags: z.tags[:0]}
	o.resetKeys()
	o.times(s)
	o.omit(otlpdata.FlagsAttribute)
	o.endpoints(s)
	o.tags(s)
	o.annotations(s)
	o.body = o.encode(z, o.body)
	return nil
}

// times sets the duration. Durations below a microsecond are rounded up, because 0 means that the
// duration is unknown.
func (o *outgoing) times(s *otlpdata.Span) {
	started := s.Start > 0
	if !started {
		if v, _ := otlpdata.Get(s.Attributes, absentStartTime); v.Bool() {
			o.omit(absentStartTime) // the receiver adds it to a span without a start
			started = true
		}
	}
	if started && s.End > s.Start {
		o.span.duration = max((s.End-s.Start)/1000, 1)
	}
}

// maxKeptKeys is the maximum number of keys for which the map is reused.
const maxKeptKeys = 1024

func (o *outgoing) resetKeys() {
	if o.keys == nil || len(o.keys) > maxKeptKeys {
		o.keys = map[string]struct{}{}
	}
	clear(o.keys)
}

// omit prevents a tag.
func (o *outgoing) omit(key string) { o.keys[key] = struct{}{} }

// tag adds a tag, unless there is one with the key or it is omitted.
func (o *outgoing) tag(key, value string) {
	if _, known := o.keys[key]; known {
		return
	}
	o.keys[key] = struct{}{}
	o.span.tags = append(o.span.tags, tag{key, value})
}

// tags adds all tags. Since a span has only one tag for each key, fields of the span take
// precedence over its attributes, and these over the attributes of scope and resource.
func (o *outgoing) tags(s *otlpdata.Span) {
	if s.Kind == otlpdata.KindInternal {
		o.tag(tagKind, "internal")
	}
	o.statusTags(s)
	if s.TraceState != "" {
		o.tag(tagTraceState, s.TraceState)
	}
	for i := range s.Links {
		l := &s.Links[i]
		packed := l.TraceID.String() + "|" + l.SpanID.String() + "|" + l.TraceState
		o.tag(linkPrefix+strconv.Itoa(i), string(appendPacked([]byte(packed), l.Attributes, l.DroppedAttributes)))
	}
	for i := range s.Attributes {
		o.tag(s.Attributes[i].Key, s.Attributes[i].Value.AsString())
	}
	for _, t := range o.scope {
		o.tag(t.key, t.value)
	}
	for _, t := range o.resource {
		o.tag(t.key, t.value)
	}
	o.count(tagDroppedAttributes, s.DroppedAttributes)
	o.count(tagDroppedEvents, s.DroppedEvents)
	o.count(tagDroppedLinks, s.DroppedLinks)
}

func (o *outgoing) count(key string, n uint32) {
	if n > 0 {
		o.tag(key, strconv.FormatUint(uint64(n), 10))
	}
}

// statusTags adds the status. Zipkin shows every span with the tag error as failed, so spans
// without an error do not get it, whatever their attributes are.
func (o *outgoing) statusTags(s *otlpdata.Span) {
	switch s.StatusCode {
	case otlpdata.StatusError:
		o.tag(tagStatusCode, "ERROR")
		if v, ok := otlpdata.Get(s.Attributes, tagError); !ok || v.AsString() == "false" {
			o.tag(tagError, "true")
		}
	case otlpdata.StatusOK:
		o.tag(tagStatusCode, "OK")
		o.omit(tagError)
	default:
		o.omit(tagError)
		return
	}
	if s.StatusMessage != "" {
		o.tag(statusText, s.StatusMessage)
	}
}

// annotations adds the events. An event with attributes is packed. Zipkin requires a time: an event
// without one gets the start of the span.
func (o *outgoing) annotations(s *otlpdata.Span) {
	for i := range s.Events {
		e := &s.Events[i]
		value := e.Name
		if len(e.Attributes) > 0 || e.DroppedAttributes > 0 {
			value = string(appendPacked([]byte(value), e.Attributes, e.DroppedAttributes))
		}
		o.span.annotations = append(o.span.annotations, annotation{cmp.Or(e.Time/1000, o.span.timestamp, 1), value})
	}
}

// appendPacked appends attributes and the number of dropped ones, see v2_packed.go.
func appendPacked(dst []byte, attributes []otlpdata.KeyValue, dropped uint32) []byte {
	dst = append(dst, "|{"...)
	for i := range attributes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(otlpdata.AppendJSONString(dst, attributes[i].Key), ':')
		dst = attributes[i].Value.AppendJSON(dst)
	}
	return strconv.AppendUint(append(dst, "}|"...), uint64(dropped), 10)
}
