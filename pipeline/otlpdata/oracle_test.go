package otlpdata

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// isStrict reports whether an error is of an encoding that pdata accepts and FromOTLP rejects.
func isStrict(err error) bool {
	return err != nil && slices.Contains([]string{"otlp: groups are not supported", "otlp: varint overflows 64 bits",
		"otlp: invalid field number"}, err.Error())
}

// checkAgainstPdata checks that FromOTLP accepts a request exactly if pdata does and its encoding
// is valid, and reads the same content. It reports whether the request was accepted.
func checkAgainstPdata(t testing.TB, data []byte) bool {
	t.Helper()
	before := bytes.Clone(data)
	oracle := ptraceotlp.NewExportRequest()
	oracleErr := oracle.UnmarshalProto(data)
	b, err := FromOTLP(data, Meta{}, unlimited())
	if limit := (*LimitError)(nil); errors.As(err, &limit) {
		return false // nested deeper than we read
	}
	if (err == nil) != (oracleErr == nil) && !isStrict(err) {
		t.Fatalf("pdata: %v\n we: %v\n%q", oracleErr, err, data)
	}
	var seen dump
	if walkErr := Walk(data, &seen); (walkErr == nil) != (err == nil) {
		t.Fatalf("FromOTLP: %v, Walk: %v", err, walkErr)
	}
	if err != nil {
		return false
	}
	want := dumpTraces(oracle.Traces())
	diffText(t, "walk", seen.String(), want)
	checkCounts(t, b, FromTraces(oracle.Traces(), Meta{}))
	checkForms(t, b, oracle.Traces(), want)
	checkRewritten(t, data, oracle.Traces())
	if !bytes.Equal(before, data) {
		t.Fatal("FromOTLP changed the request")
	}
	return true
}

func checkCounts(t testing.TB, b, want *Batch) {
	t.Helper()
	if b.Len() != want.Len() || !reflect.DeepEqual(b.Services(), want.Services()) {
		t.Fatalf("got %d spans %+v, want %d %+v", b.Len(), b.Services(), want.Len(), want.Services())
	}
}

// checkForms checks that both forms of a batch hold the same spans.
func checkForms(t testing.TB, b *Batch, td ptrace.Traces, want string) {
	t.Helper()
	objects, err := b.Traces()
	if err != nil {
		t.Fatal(err)
	}
	diffText(t, "Traces", dumpTraces(objects), want)
	fromObjects := FromTraces(td, Meta{})
	size := fromObjects.Size()
	chunks := chunksOf(t, fromObjects)
	if len(chunks) != 1 || len(chunks[0]) != size {
		t.Fatalf("Size is %d, but there are %d chunks, the first of %d bytes", size, len(chunks), len(chunks[0]))
	}
	diffText(t, "encoded again", dumpBytes(t, chunks[0]), want)
}

// checkRewritten checks that AppendResourceSpans preserves the spans that Walk visits, including
// the fields that are only present in their encoded form (Span.Raw).
func checkRewritten(t testing.TB, data []byte, td ptrace.Traces) {
	t.Helper()
	var w rewriter
	if err := Walk(data, &w); err != nil {
		t.Fatal(err)
	}
	w.flush()
	got := ptraceotlp.NewExportRequest()
	if err := got.UnmarshalProto(w.out); err != nil {
		t.Fatalf("pdata rejects the output of AppendResourceSpans: %v\n%q", err, w.out)
	}
	if !bytes.Equal(marshal(t, got.Traces()), marshal(t, onePerScope(td))) {
		diffText(t, "rewritten", dumpTraces(got.Traces()), dumpTraces(onePerScope(td)))
		t.Fatal("AppendResourceSpans changed data that only Raw holds")
	}
}

func marshal(t testing.TB, td ptrace.Traces) []byte {
	t.Helper()
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// onePerScope gives each scope its own resource, as AppendResourceSpans does.
func onePerScope(td ptrace.Traces) ptrace.Traces {
	out := ptrace.NewTraces()
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			to := out.ResourceSpans().AppendEmpty()
			rs.Resource().CopyTo(to.Resource())
			to.SetSchemaUrl(rs.SchemaUrl())
			ss.CopyTo(to.ScopeSpans().AppendEmpty())
		}
	}
	return out
}

type rewriter struct {
	out      []byte
	resource Resource
	scope    Scope
	spans    [][]byte
	open     bool
}

func (w *rewriter) Resource(r *Resource) error {
	w.flush()
	w.resource = *r
	return nil
}

func (w *rewriter) Scope(s *Scope) error {
	w.flush()
	w.scope, w.open = *s, true
	return nil
}

func (w *rewriter) Span(s *Span) error {
	w.spans = append(w.spans, s.Raw)
	return nil
}

func (w *rewriter) flush() {
	if w.open {
		w.out = AppendResourceSpans(w.out, &w.resource, &w.scope, w.spans...)
	}
	w.spans, w.open = nil, false
}

func diffText(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("%s\n got:\n%s\nwant:\n%s", what, got, want)
	}
}

func dumpBytes(t testing.TB, b []byte) string {
	t.Helper()
	var d dump
	if err := Walk(b, &d); err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// dump writes every field that a walk reads as text.
type dump struct{ strings.Builder }

func (d *dump) Resource(r *Resource) error {
	fmt.Fprintf(d, "resource %q %s dropped %d schema %q\n", r.Service, attributesText(r.Attributes), r.DroppedAttributes, r.SchemaURL)
	return nil
}

func (d *dump) Scope(s *Scope) error {
	fmt.Fprintf(d, " scope %q %q %s dropped %d schema %q\n", s.Name, s.Version, attributesText(s.Attributes), s.DroppedAttributes, s.SchemaURL)
	return nil
}

func (d *dump) Span(s *Span) error {
	fmt.Fprintf(d, "  span %x %x %x %q %q kind %d status %d %q flags %x times %d %d dropped %d %d %d %s\n", s.TraceID[:], s.SpanID[:],
		s.ParentID[:], s.TraceState, s.Name, s.Kind, s.StatusCode, s.StatusMessage, s.Flags, s.Start, s.End,
		s.DroppedAttributes, s.DroppedEvents, s.DroppedLinks, attributesText(s.Attributes))
	for _, e := range s.Events {
		fmt.Fprintf(d, "   event %d %q %s dropped %d\n", e.Time, e.Name, attributesText(e.Attributes), e.DroppedAttributes)
	}
	for _, l := range s.Links {
		fmt.Fprintf(d, "   link %x %x %q %s dropped %d flags %x\n", l.TraceID[:], l.SpanID[:], l.TraceState, attributesText(l.Attributes),
			l.DroppedAttributes, l.Flags)
	}
	return nil
}

// dumpTraces writes pdata objects in the form of dump.
func dumpTraces(td ptrace.Traces) string {
	var d dump
	for _, rs := range td.ResourceSpans().All() {
		r := rs.Resource()
		fmt.Fprintf(&d, "resource %q %s dropped %d schema %q\n", serviceNameText(r.Attributes()), mapText(r.Attributes()),
			r.DroppedAttributesCount(), rs.SchemaUrl())
		for _, ss := range rs.ScopeSpans().All() {
			s := ss.Scope()
			fmt.Fprintf(&d, " scope %q %q %s dropped %d schema %q\n", s.Name(), s.Version(), mapText(s.Attributes()),
				s.DroppedAttributesCount(), ss.SchemaUrl())
			for _, span := range ss.Spans().All() {
				dumpSpan(&d, span)
			}
		}
	}
	return d.String()
}

func dumpSpan(d *dump, s ptrace.Span) {
	traceID, id, parent := s.TraceID(), s.SpanID(), s.ParentSpanID()
	fmt.Fprintf(d, "  span %x %x %x %q %q kind %d status %d %q flags %x times %d %d dropped %d %d %d %s\n", traceID[:], id[:], parent[:],
		s.TraceState().AsRaw(), s.Name(), int32(s.Kind()), int32(s.Status().Code()), s.Status().Message(), s.Flags(),
		uint64(s.StartTimestamp()), uint64(s.EndTimestamp()),
		s.DroppedAttributesCount(), s.DroppedEventsCount(), s.DroppedLinksCount(), mapText(s.Attributes()))
	for _, e := range s.Events().All() {
		fmt.Fprintf(d, "   event %d %q %s dropped %d\n", uint64(e.Timestamp()), e.Name(), mapText(e.Attributes()), e.DroppedAttributesCount())
	}
	for _, l := range s.Links().All() {
		traceID, id := l.TraceID(), l.SpanID()
		fmt.Fprintf(d, "   link %x %x %q %s dropped %d flags %x\n", traceID[:], id[:], l.TraceState().AsRaw(), mapText(l.Attributes()),
			l.DroppedAttributesCount(), l.Flags())
	}
}

func serviceNameText(m pcommon.Map) string {
	for k, v := range m.All() {
		switch {
		case k != "service.name":
			continue
		case v.Type() != pcommon.ValueTypeStr:
			return "service-name-wrong-type"
		case v.Str() == "":
			return "empty-service-name"
		}
		return v.Str()
	}
	return "missing-service-name"
}

func attributesText(kvs []KeyValue) string {
	var sb strings.Builder
	for _, kv := range kvs {
		fmt.Fprintf(&sb, "%q=%s ", kv.Key, valueText(kv.Value))
	}
	return "{" + sb.String() + "}"
}

func mapText(m pcommon.Map) string {
	var sb strings.Builder
	for k, v := range m.All() {
		fmt.Fprintf(&sb, "%q=%s ", k, pdataValueText(v))
	}
	return "{" + sb.String() + "}"
}

func valueText(v Value) string {
	switch v.Kind() {
	case ValueString:
		return fmt.Sprintf("%q", v.Str())
	case ValueBool:
		return fmt.Sprint(v.Bool())
	case ValueInt:
		return fmt.Sprint(v.Int())
	case ValueDouble:
		return fmt.Sprintf("f%x", math.Float64bits(v.Double()))
	case ValueBytes:
		return fmt.Sprintf("b%x", v.Bytes())
	case ValueArray:
		var sb strings.Builder
		for e := range v.Elements() {
			sb.WriteString(valueText(e) + " ")
		}
		return "[" + sb.String() + "]"
	case ValueMap:
		var kvs []KeyValue
		for kv := range v.Entries() {
			kvs = append(kvs, kv)
		}
		return attributesText(kvs)
	}
	return "-"
}

func pdataValueText(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return fmt.Sprintf("%q", v.Str())
	case pcommon.ValueTypeBool:
		return fmt.Sprint(v.Bool())
	case pcommon.ValueTypeInt:
		return fmt.Sprint(v.Int())
	case pcommon.ValueTypeDouble:
		return fmt.Sprintf("f%x", math.Float64bits(v.Double()))
	case pcommon.ValueTypeBytes:
		return fmt.Sprintf("b%x", v.Bytes().AsRaw())
	case pcommon.ValueTypeSlice:
		var sb strings.Builder
		for _, e := range v.Slice().All() {
			sb.WriteString(pdataValueText(e) + " ")
		}
		return "[" + sb.String() + "]"
	case pcommon.ValueTypeMap:
		return mapText(v.Map())
	}
	return "-"
}
