package pipelinetest

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// content is everything that a batch says about a span: the fields of the span, its scope, its
// resource and the metadata, in a fixed order.
type content []field

type field struct{ name, value string }

// differs describes the first difference between sent and arrived content, or returns "".
func (sent content) differs(arrived content) string {
	for i, f := range sent {
		if got := arrived[i].value; got != f.value {
			return fmt.Sprintf("%s: sent %s, arrived %s", f.name, shown(f.value), shown(got))
		}
	}
	return ""
}

func shown(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// named is the content of a span with its name, which identifies the span.
type named struct {
	name    string
	content content
}

// read returns the content of the spans of a batch in order, according to the options of the suite.
// The error says why the batch is invalid.
func (s *subject) read(b *otlpdata.Batch) ([]named, error) {
	td, err := decoded(b)
	if err != nil {
		return nil, err
	}
	if err := miscounted(b, td); err != nil {
		return nil, err
	}
	if s.normalize != nil {
		s.normalize(td)
	}
	return s.contents(td, b.Meta()), nil
}

// decoded returns the spans of a batch in objects of their own.
func decoded(b *otlpdata.Batch) (ptrace.Traces, error) {
	encoded, err := b.Encoded()
	if err != nil {
		return ptrace.Traces{}, err
	}
	req := ptraceotlp.NewExportRequest()
	if err := req.UnmarshalProto(encoded); err != nil {
		return ptrace.Traces{}, fmt.Errorf("cannot decode a batch: %w", err)
	}
	return req.Traces(), nil
}

// miscounted compares the span counts of a batch with its spans.
func miscounted(b *otlpdata.Batch, td ptrace.Traces) error {
	counted := otlpdata.FromTraces(td, b.Meta())
	if got, want := b.Len(), counted.Len(); got != want {
		return fmt.Errorf("batch has %d spans, but Len returns %d", want, got)
	}
	got, want := map[string]otlpdata.ServiceCount{}, map[string]otlpdata.ServiceCount{}
	for _, c := range b.Services() {
		got[c.Service] = c
	}
	for _, c := range counted.Services() {
		want[c.Service] = c
		if got[c.Service] != c {
			return fmt.Errorf("batch has %+v, but Services returns %+v", c, got[c.Service])
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("batch has %d services, but Services returns %d", len(want), len(got))
	}
	return nil
}

// contents returns the content of spans in order.
func (s *subject) contents(td ptrace.Traces, meta otlpdata.Meta) (all []named) {
	for _, rs := range td.ResourceSpans().All() {
		above := append(s.origin(meta),
			field{"resource attributes", attributes(rs.Resource().Attributes())},
			field{"resource dropped attributes", number(rs.Resource().DroppedAttributesCount())},
			field{"resource schema URL", rs.SchemaUrl()})
		for _, ss := range rs.ScopeSpans().All() {
			scope := append(slices.Clip(above),
				field{"scope name", ss.Scope().Name()},
				field{"scope version", ss.Scope().Version()},
				field{"scope attributes", attributes(ss.Scope().Attributes())},
				field{"scope dropped attributes", number(ss.Scope().DroppedAttributesCount())},
				field{"scope schema URL", ss.SchemaUrl()})
			for _, span := range ss.Spans().All() {
				all = append(all, named{span.Name(), append(slices.Clip(scope), spanFields(span)...)})
			}
		}
	}
	return all
}

// origin returns the metadata that must arrive.
func (s *subject) origin(meta otlpdata.Meta) (fields content) {
	if !s.noTenant {
		fields = append(fields, field{"tenant", meta.Tenant})
	}
	if s.isProcessor() {
		fields = append(fields, field{"format", meta.Format}, field{"transport", meta.Transport},
			field{"time of arrival", meta.Received.String()})
	}
	return fields
}

func spanFields(s ptrace.Span) content {
	fields := content{
		{"trace id", s.TraceID().String()},
		{"span id", s.SpanID().String()},
		{"parent id", s.ParentSpanID().String()},
		{"trace state", s.TraceState().AsRaw()},
		{"flags", number(s.Flags())},
		{"kind", s.Kind().String()},
		{"start", number(s.StartTimestamp())},
		{"end", number(s.EndTimestamp())},
		{"status", s.Status().Code().String() + " " + s.Status().Message()},
		{"attributes", attributes(s.Attributes())},
		{"dropped attributes", number(s.DroppedAttributesCount())},
		{"dropped events", number(s.DroppedEventsCount())},
		{"dropped links", number(s.DroppedLinksCount())},
	}
	var events, links []string
	for _, e := range s.Events().All() {
		events = append(events, fmt.Sprintf("%q at %d {%s} dropped %d", e.Name(), e.Timestamp(), attributes(e.Attributes()),
			e.DroppedAttributesCount()))
	}
	for _, l := range s.Links().All() {
		links = append(links, fmt.Sprintf("%s-%s %q flags %d {%s} dropped %d", l.TraceID(), l.SpanID(), l.TraceState().AsRaw(), l.Flags(),
			attributes(l.Attributes()), l.DroppedAttributesCount()))
	}
	return append(fields, field{"events", strings.Join(events, ", ")}, field{"links", strings.Join(links, ", ")})
}

func number[N ~uint32 | ~uint64](n N) string { return fmt.Sprint(uint64(n)) }

// attributes returns attributes as text, sorted.
func attributes(m pcommon.Map) string {
	var all []string
	for k, v := range m.All() {
		all = append(all, k+"="+v.Type().String()+"("+v.AsString()+")")
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
