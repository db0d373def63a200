package native

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// text writes OTLP in lines, with everything that is in it. The flat form does not show how spans
// share resources and scopes.
type text struct {
	strings.Builder
	flat            bool
	resource, scope string
}

// textOf returns the text of a request, which must be valid OTLP.
func textOf(t testing.TB, request []byte, flat bool) string {
	t.Helper()
	const most = 1 << 24 // limits are not tested here
	if _, err := otlpdata.FromOTLP(request, otlpdata.Meta{}, otlpdata.Limits{Spans: most, Items: most}); err != nil {
		t.Fatalf("output is not valid OTLP: %v", err)
	}
	w := text{flat: flat}
	if err := otlpdata.Walk(request, &w); err != nil {
		t.Fatal(err)
	}
	return w.String()
}

// difference returns the first lines in which two texts differ, or "" if they are equal.
func difference(got, want string) string {
	wants := strings.Split(want, "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(wants) || line != wants[i] {
			return fmt.Sprintf("line %d: got\n%s\nwant\n%s", i, line, strings.Join(wants[min(i, len(wants)):min(i+1, len(wants))], ""))
		}
	}
	if len(got) < len(want) {
		return "got less than the beginning of\n" + want
	}
	return ""
}

func (w *text) Resource(r *otlpdata.Resource) error {
	w.resource = "resource\n" + attributesText("    ", r.Attributes)
	if !w.flat {
		w.WriteString(w.resource)
	}
	return nil
}

func (w *text) Scope(s *otlpdata.Scope) error {
	w.scope = fmt.Sprintf("  scope %q %q\n", s.Name, s.Version)
	if !w.flat {
		w.WriteString(w.scope)
	}
	return nil
}

func (w *text) Span(s *otlpdata.Span) error {
	if w.flat {
		w.WriteString(w.resource + w.scope)
	}
	fmt.Fprintf(w, "    span %q trace=%x id=%x parent=%x\n", s.Name, s.TraceID[:], s.SpanID[:], s.ParentID[:])
	fmt.Fprintf(w, "      start=%d end=%d kind=%d status=%d %q flags=%d", s.Start, s.End, s.Kind, s.StatusCode, s.StatusMessage, s.Flags)
	fmt.Fprintf(w, " state=%q\n", s.TraceState)
	w.WriteString(attributesText("      ", s.Attributes))
	for _, l := range s.Links {
		fmt.Fprintf(w, "      link trace=%x span=%x\n", l.TraceID[:], l.SpanID[:])
		w.WriteString(attributesText("        ", l.Attributes))
	}
	for _, e := range s.Events {
		fmt.Fprintf(w, "      event %d %q\n", e.Time, e.Name)
		w.WriteString(attributesText("        ", e.Attributes))
	}
	return nil
}

func attributesText(indent string, kvs []otlpdata.KeyValue) string {
	var w strings.Builder
	for _, kv := range kvs {
		v := kv.Value
		fmt.Fprintf(&w, "%s%q ", indent, kv.Key)
		switch v.Kind() {
		case otlpdata.ValueString:
			fmt.Fprintf(&w, "string %q\n", v.Str())
		case otlpdata.ValueDouble:
			fmt.Fprintf(&w, "double %v %x\n", v.Double(), math.Float64bits(v.Double()))
		case otlpdata.ValueBytes:
			fmt.Fprintf(&w, "bytes %x\n", v.Bytes())
		default:
			fmt.Fprintf(&w, "%s\n", v.AsString())
		}
	}
	return w.String()
}

// expected returns the flat text of the OTLP for a batch. It follows the rules of the original
// collector in the simplest way, without regard to time and memory.
func expected(b *api_v2.Batch) string {
	w := text{flat: true}
	for _, s := range b.GetSpans() {
		process := s.GetProcess()
		if process == nil {
			process = b.GetProcess()
		}
		out := expectedSpan(s)
		name, version := PromoteTags(&out)
		if s.GetFlags() > 1 {
			out.Attributes = append(out.Attributes, otlpdata.KeyValue{Key: otlpdata.FlagsAttribute, Value: otlpdata.IntValue(int64(s.GetFlags()))})
		}
		w.Resource(&otlpdata.Resource{Attributes: expectedResource(process)})
		w.Scope(&otlpdata.Scope{Name: name, Version: version})
		w.Span(&out)
	}
	return w.String()
}

func expectedResource(p *api_v2.Process) (out []otlpdata.KeyValue) {
	if p.GetServiceName() != "" && p.GetServiceName() != noServiceName {
		out = append(out, otlpdata.KeyValue{Key: "service.name", Value: otlpdata.StringValue(p.GetServiceName())})
	}
	last := map[string]int{}
	for _, kv := range expectedTags(p.GetTags()) {
		out = append(out, kv)
		last[kv.Key] = len(out)
	}
	if i := last["hostname"]; i > 0 && last["host.name"] == 0 {
		out[i-1].Key = "host.name"
	}
	i := max(last["jaeger.version"], last["tracing.version"])
	if i > 0 && out[i-1].Value.Kind() == otlpdata.ValueString && last["opencensus.exporterversion"] == 0 {
		version := otlpdata.StringValue("Jaeger-" + out[i-1].Value.Str())
		out[i-1] = otlpdata.KeyValue{Key: "opencensus.exporterversion", Value: version}
	}
	return out
}

func expectedSpan(s *api_v2.Span) otlpdata.Span {
	out := otlpdata.Span{TraceID: traceID(s.GetTraceId()), SpanID: spanIDOf(s.GetSpanId()),
		Name: s.GetOperationName(), Attributes: expectedTags(s.GetTags()), Flags: s.GetFlags() & 1}
	out.Start, out.End = expectedTime(s.GetStartTime(), nil), expectedTime(s.GetStartTime(), s.GetDuration())
	out.ParentID = expectedParent(s.GetReferences(), out.TraceID)
	for _, r := range s.GetReferences() {
		l := otlpdata.Link{TraceID: traceID(r.GetTraceId()), SpanID: spanIDOf(r.GetSpanId())}
		typ := "follows_from"
		if r.GetRefType() == api_v2.SpanRefType_CHILD_OF {
			if typ = "child_of"; l.SpanID == out.ParentID && l.TraceID == out.TraceID {
				continue
			}
		}
		if l.TraceID.IsZero() && l.SpanID.IsZero() {
			continue
		}
		l.Attributes = []otlpdata.KeyValue{{Key: "opentracing.ref_type", Value: otlpdata.StringValue(typ)}}
		out.Links = append(out.Links, l)
	}
	for _, l := range s.GetLogs() {
		e := otlpdata.Event{Time: expectedTime(l.GetTimestamp(), nil), Attributes: expectedTags(l.GetFields())}
		for i, kv := range e.Attributes {
			if kv.Key == "event" && kv.Value.Kind() == otlpdata.ValueString {
				e.Name, e.Attributes = kv.Value.Str(), slices.Delete(e.Attributes, i, i+1)
				break
			}
		}
		out.Events = append(out.Events, e)
	}
	if len(s.GetWarnings()) > 0 {
		var array []byte
		for _, text := range s.GetWarnings() {
			array = protoenc.AppendBytes(array, 1, append(protoenc.AppendHeader(nil, 1, len(text)), text...))
		}
		out.Attributes = append(out.Attributes, otlpdata.KeyValue{Key: "@jaeger@warnings",
			Value: otlpdata.EncodedValue(otlpdata.ValueArray, string(array))})
	}
	return out
}

func expectedParent(refs []*api_v2.SpanRef, trace otlpdata.TraceID) (parent otlpdata.SpanID) {
	for _, typ := range []api_v2.SpanRefType{api_v2.SpanRefType_CHILD_OF, api_v2.SpanRefType_FOLLOWS_FROM} {
		for _, r := range refs {
			if r.GetRefType() == typ && traceID(r.GetTraceId()) == trace {
				return spanIDOf(r.GetSpanId())
			}
		}
	}
	return parent
}

// spanIDOf converts an id of 8 or 0 bytes.
func spanIDOf(b []byte) otlpdata.SpanID { return otlpdata.SpanID(slices.Concat(b, make([]byte, 8))) }

// traceID converts an id of 16, 8 or 0 bytes.
func traceID(b []byte) otlpdata.TraceID {
	return otlpdata.TraceID(slices.Concat(make([]byte, 16-len(b)), b))
}

func expectedTime(at *timestamppb.Timestamp, plus *durationpb.Duration) uint64 {
	ns := new(big.Int).Mul(big.NewInt(1e9), new(big.Int).Add(big.NewInt(at.GetSeconds()), big.NewInt(plus.GetSeconds())))
	ns.Add(ns, big.NewInt(int64(at.GetNanos())+int64(plus.GetNanos())))
	switch {
	case ns.Sign() < 0:
		return 0
	case !ns.IsUint64():
		return math.MaxUint64
	}
	return ns.Uint64()
}

func expectedTags(tags []*api_v2.KeyValue) (out []otlpdata.KeyValue) {
	for _, kv := range tags {
		v := otlpdata.StringValue(fmt.Sprint("Unknown VType: ", int32(kv.GetVType())))
		switch kv.GetVType() {
		case api_v2.ValueType_STRING:
			v = otlpdata.StringValue(kv.GetVStr())
		case api_v2.ValueType_BOOL:
			v = otlpdata.BoolValue(kv.GetVBool())
		case api_v2.ValueType_INT64:
			v = otlpdata.IntValue(kv.GetVInt64())
		case api_v2.ValueType_FLOAT64:
			v = otlpdata.DoubleValue(kv.GetVFloat64())
		case api_v2.ValueType_BINARY:
			v = otlpdata.EncodedValue(otlpdata.ValueBytes, string(kv.GetVBinary()))
		}
		out = append(out, otlpdata.KeyValue{Key: kv.GetKey(), Value: v})
	}
	return out
}
