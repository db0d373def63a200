package storetest

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// base is the start of most spans: a day in 2023.
const base = uint64(1_700_000_000_000_000_000)

// putAllTypes adds attributes of each type, including the limits of the type.
func putAllTypes(m pcommon.Map) {
	m.PutStr("string", "text")
	m.PutStr("string.empty", "")
	m.PutEmpty("empty")
	m.PutBool("bool.true", true)
	m.PutBool("bool.false", false)
	m.PutInt("int.max", math.MaxInt64)
	m.PutInt("int.min", math.MinInt64)
	m.PutInt("int.zero", 0)
	m.PutDouble("double", 0.1)
	m.PutDouble("double.nan", math.NaN())
	m.PutDouble("double.inf", math.Inf(-1))
	m.PutDouble("double.negative.zero", math.Copysign(0, -1))
	m.PutDouble("double.large", 1e300)
	m.PutEmptyBytes("bytes").FromRaw([]byte{0, 1, 0xfe, 0xff})
	m.PutEmptyBytes("bytes.empty")
	m.PutEmptySlice("array.empty")
	m.PutEmptyMap("map.empty")
	list := m.PutEmptySlice("array")
	list.AppendEmpty().SetStr("a")
	list.AppendEmpty().SetInt(-1)
	list.AppendEmpty().SetEmptySlice().AppendEmpty().SetDouble(2.5)
	inner := m.PutEmptyMap("map")
	inner.PutStr("k", "v")
	inner.PutEmptyMap("deeper").PutEmptyBytes("b").FromRaw([]byte("x"))
	inner.PutEmpty("nothing")
}

// fullSpan adds a span that uses every field.
func fullSpan(td ptrace.Traces, trace, id uint64) {
	rs := td.ResourceSpans().AppendEmpty()
	rs.SetSchemaUrl("https://example.com/schema/resource")
	rs.Resource().SetDroppedAttributesCount(3)
	rs.Resource().Attributes().PutStr("service.name", "everything")
	putAllTypes(rs.Resource().Attributes())
	ss := rs.ScopeSpans().AppendEmpty()
	ss.SetSchemaUrl("https://example.com/schema/scope")
	ss.Scope().SetName("library")
	ss.Scope().SetVersion("1.2.3")
	ss.Scope().SetDroppedAttributesCount(4)
	putAllTypes(ss.Scope().Attributes())
	s := (&request{td, ss}).span(trace, id, "operation", base)
	s.SetParentSpanID(pcommon.SpanID(spanID(id + 1)))
	s.TraceState().FromRaw("vendor=value,other=1")
	s.SetFlags(0x301)
	s.SetKind(ptrace.SpanKindConsumer)
	s.Status().SetCode(ptrace.StatusCodeError)
	s.Status().SetMessage("failed")
	s.SetDroppedAttributesCount(5)
	s.SetDroppedEventsCount(6)
	s.SetDroppedLinksCount(math.MaxUint32)
	putAllTypes(s.Attributes())
	s.Attributes().PutInt(otlpdata.FlagsAttribute, 3)
	for i := range 2 {
		e := s.Events().AppendEmpty()
		e.SetName("event")
		e.SetTimestamp(pcommon.Timestamp(base + uint64(i)))
		e.SetDroppedAttributesCount(7)
		putAllTypes(e.Attributes())
		l := s.Links().AppendEmpty()
		l.SetTraceID(pcommon.TraceID(traceID(99)))
		l.SetSpanID(pcommon.SpanID(spanID(uint64(i))))
		l.TraceState().FromRaw("link=state")
		l.SetFlags(0x101)
		l.SetDroppedAttributesCount(8)
		putAllTypes(l.Attributes())
	}
}

func checkContent(s *suite) {
	td := ptrace.NewTraces()
	fullSpan(td, 1, 10)
	bare := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	bare.Spans().AppendEmpty().SetTraceID(pcommon.TraceID(traceID(1)))
	unknown := (&request{td, bare}).span(1, 11, "unknown enum values", base)
	unknown.SetKind(77)
	unknown.Status().SetCode(9)
	s.send("", td)
	s.checkTraces("", traceID(1))

	// Each attribute is found by its text form in each place.
	m := pcommon.NewMap()
	putAllTypes(m)
	for key, text := range allTypesAsText() {
		for _, p := range []tracestore.Place{tracestore.AnyText, tracestore.AnyAttribute, tracestore.SpanAttribute,
			tracestore.ResourceAttribute, tracestore.ScopeAttribute, tracestore.EventAttribute, tracestore.LinkAttribute} {
			q := tracestore.Query{Where: tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Value: tracestore.Text(text)}}
			if got := s.checkFind(q, tracestore.WantIDs); len(got) != 1 {
				s.Errorf("%s=%q in place %d: %d traces, want 1", key, text, p, len(got))
			}
		}
	}
	if n := len(allTypesAsText()); n != m.Len() {
		s.Errorf("%d text forms for %d attributes", n, m.Len())
	}
}

// allTypesAsText returns the text forms of putAllTypes.
func allTypesAsText() map[string]string {
	return map[string]string{
		"string": "text", "string.empty": "", "empty": "", "bool.true": "true", "bool.false": "false",
		"int.max": "9223372036854775807", "int.min": "-9223372036854775808", "int.zero": "0",
		"double": "0.1", "double.nan": "NaN", "double.inf": "-Inf", "double.negative.zero": "-0", "double.large": "1e+300",
		"bytes": "AAH+/w==", "bytes.empty": "", "array.empty": "[]", "map.empty": "{}",
		"array": `["a",-1,[2.5]]`, "map": `{"k":"v","deeper":{"b":"eA=="},"nothing":null}`,
	}
}

func checkIDs(s *suite) {
	wide := otlpdata.TraceID{0x80, 15: 1}
	r := newRequest("ids")
	r.span(1, 1, "64 bits", base)
	r.span(math.MaxUint64, math.MaxUint64, "64 bits, all set", base+1)
	r.span(0, 1, "128 bits", base+2).SetTraceID(pcommon.TraceID(wide))
	r.span(0, 5, "zero trace", base+3)
	r.span(0, 0, "zero trace and span", base+4)
	r.span(1, 0, "zero span", base+5)
	s.send("", r.traces)
	s.checkTraces("", traceID(1), traceID(math.MaxUint64), wide, traceID(0))
	if got := s.checkFind(tracestore.Query{}, tracestore.WantFull); len(got) != 4 {
		s.Errorf("%d traces, want 4", len(got))
	}
}

func checkDuplicates(s *suite) {
	r := newRequest("dup")
	for range 2 {
		r.span(1, 1, "twice in a batch", base)
	}
	r.span(1, 2, "once", base)
	s.send("", r.traces)
	s.send("", r.traces)
	moved := newRequest("dup")
	moved.span(1, 1, "twice in a batch", base)
	moved.span(2, 1, "twice in a batch", base) // not a duplicate: another trace
	s.send("", moved.traces)
	s.checkTraces("", traceID(1), traceID(2))
	for _, res := range s.checkFind(tracestore.Query{}, tracestore.WantSummaries) {
		if want := map[otlpdata.TraceID]int{traceID(1): 2, traceID(2): 1}[res.ID]; res.Summary != nil && res.Summary.Spans != want {
			s.Errorf("trace %s: summary counts %d spans, want %d", res.ID, res.Summary.Spans, want)
		}
	}
}

func checkSharedIDs(s *suite) {
	for _, kind := range []ptrace.SpanKind{ptrace.SpanKindClient, ptrace.SpanKindServer} {
		r := newRequest(kind.String())
		r.span(1, 1, "call", base).SetKind(kind)
		s.send("", r.traces)
	}
	// A difference in the scope or in a schema URL is enough.
	for i := range 3 {
		r := newRequest(ptrace.SpanKindClient.String())
		r.span(1, 1, "call", base).SetKind(ptrace.SpanKindClient)
		switch i {
		case 0:
			r.scope.Scope().SetName("other scope")
		case 1:
			r.scope.SetSchemaUrl("scope")
		case 2:
			r.traces.ResourceSpans().At(0).SetSchemaUrl("resource")
		}
		s.send("", r.traces)
	}
	s.checkTraces("", traceID(1))
	if n := len(s.sent.trace("", traceID(1))); n != 5 {
		s.Errorf("the oracle has %d spans, want 5", n)
	}
}

func checkLateSpans(s *suite) {
	for i, offset := range []uint64{5000, 9000, 1000, 7000} {
		r := newRequest("late")
		r.span(1, uint64(i), "span", base+offset)
		r.span(2, uint64(i), "span", base+9000-offset)
		s.send("", r.traces)
		s.checkTraces("", traceID(1), traceID(2))
		s.checkFind(tracestore.Query{}, tracestore.WantFull)
		s.checkFind(tracestore.Query{}, tracestore.WantSummaries)
	}
}

func checkLargeTrace(s *suite) {
	const spans, perRequest = 10_000, 1000
	for from := 0; from < spans; from += perRequest {
		r := newRequest("large")
		for i := range perRequest {
			r.span(7, uint64(from+i), "span", base+uint64(from+i)).SetParentSpanID(pcommon.SpanID(spanID(1)))
		}
		s.send("", r.traces)
	}
	s.checkTraces("", traceID(7))
	s.checkFind(tracestore.Query{Limit: 1}, tracestore.WantFull)
	s.checkFind(tracestore.Query{Limit: 1}, tracestore.WantSummaries)
}

func checkStrings(s *suite) {
	texts := []string{"é", "e\u0301", "日本語", "a\x00b", "\xff\xfe", "ok\xc3", "\u2028", " lead and trail ", "a:b=c", `"quoted\`}
	for i, text := range texts {
		r := newRequest(text)
		sp := r.span(uint64(i+1), 1, text, base+uint64(i))
		sp.Attributes().PutStr(text, text)
		sp.Status().SetMessage(text)
		sp.Events().AppendEmpty().SetName(text)
		s.send("", r.traces)
		s.checkTraces("", traceID(uint64(i+1)))
	}
	for i, text := range texts {
		for _, f := range []tracestore.Field{{Place: tracestore.Service}, {Place: tracestore.AnyAttribute, Key: text},
			{Place: tracestore.EventName}, {Place: tracestore.StatusMessage}} {
			got := s.checkFind(tracestore.Query{Where: tracestore.Cond{Field: f, Value: tracestore.Text(text)}}, tracestore.WantIDs)
			if len(got) != 1 || got[0].ID != traceID(uint64(i+1)) {
				s.Errorf("%q in %+v: %d results, want only its trace", text, f, len(got))
			}
		}
	}
	s.checkCatalogOf("")
}

func checkServiceNames(s *suite) {
	for i, put := range []func(pcommon.Map){
		func(pcommon.Map) {},
		func(m pcommon.Map) { m.PutStr("service.name", "") },
		func(m pcommon.Map) { m.PutInt("service.name", 5) },
		func(m pcommon.Map) { m.PutEmptySlice("service.name") },
	} {
		r := newRequest("")
		attributes := r.traces.ResourceSpans().At(0).Resource().Attributes()
		attributes.Remove("service.name")
		put(attributes)
		r.span(uint64(i), 1, "", base)
		s.send("", r.traces)
	}
	for _, service := range []string{otlpdata.MissingServiceName, otlpdata.EmptyServiceName, otlpdata.WrongTypeServiceName} {
		q := tracestore.Query{Where: tracestore.And{
			tracestore.Cond{Field: tracestore.Field{Place: tracestore.Service}, Value: tracestore.Text(service)},
			tracestore.Cond{Field: tracestore.Field{Place: tracestore.Name}, Value: tracestore.Text(otlpdata.EmptySpanName)},
		}}
		if len(s.checkFind(q, tracestore.WantFull)) == 0 {
			s.Errorf("no trace found for service %q", service)
		}
	}
	s.checkCatalogOf("")
}

func checkTenants(s *suite) {
	for i, tenant := range []string{"", "a", "b"} {
		r := newRequest("service of " + tenant)
		r.span(1, 1, "shared", base)
		r.span(1, uint64(10+i), "own of "+tenant, base+uint64(i))
		r.span(uint64(2+i), 1, "only here", base)
		s.send(tenant, r.traces)
	}
	for i, tenant := range []string{"", "a", "b", "unknown"} {
		if tenant != "unknown" {
			s.checkTraces(tenant, traceID(1), traceID(uint64(2+i)))
		}
		s.checkFind(tracestore.Query{Tenant: tenant}, tracestore.WantFull)
		s.checkCatalogOf(tenant)
		if ids, _ := s.read(tenant, tracestore.TraceRef{ID: traceID(uint64(2 + (i+1)%3))}); len(ids) != 0 {
			s.Errorf("tenant %q reads a trace of another tenant", tenant)
		}
	}
}

func checkRefs(s *suite) {
	r := newRequest("refs")
	for i := range uint64(5) {
		r.span(i+1, 1, "span", base+i)
	}
	s.send("", r.traces)
	ids, spans := s.read("", tracestore.TraceRef{ID: traceID(4)}, tracestore.TraceRef{ID: traceID(77)},
		tracestore.TraceRef{ID: traceID(2)}, tracestore.TraceRef{ID: traceID(5)})
	want := []otlpdata.TraceID{traceID(4), traceID(2), traceID(5)}
	if len(ids) != len(want) {
		s.Fatalf("%d traces, want %d: unknown ids must yield nothing", len(ids), len(want))
	}
	for i := range want {
		if ids[i] != want[i] {
			s.Errorf("trace %d is %s, want %s: the order must be the order of the references", i, ids[i], want[i])
		}
		s.sameSpans(ids[i], spans[i], s.sent.trace("", ids[i]))
	}
	if ids, _ := s.read(""); len(ids) != 0 {
		s.Errorf("%d traces for no references", len(ids))
	}
}
