package otlpjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/internal/translate/otlpjson"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func encode(t testing.TB, batches ...*otlpdata.Batch) []byte {
	t.Helper()
	w := otlpjson.Writer{Buf: []byte(`{"resourceSpans":[`)}
	for _, b := range batches {
		if err := b.Walk(&w); err != nil {
			t.Fatal(err)
		}
		w.End()
	}
	return append(w.Buf, "]}"...)
}

// everything returns a request in which every field has a value other than the default.
func everything() ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.SetSchemaUrl("https://resource")
	rs.Resource().SetDroppedAttributesCount(1)
	a := rs.Resource().Attributes()
	a.PutStr("service.name", "cart \"<ü>\" \u2028")
	a.PutInt("int", math.MinInt64)
	a.PutBool("bool", false)
	a.PutDouble("double", -0.5)
	a.PutDouble("inf", math.Inf(1))
	a.PutDouble("-inf", math.Inf(-1))
	a.PutEmptyBytes("bytes").FromRaw([]byte{0xfb, 0xff})
	a.PutEmpty("empty")
	list := a.PutEmptySlice("list")
	list.AppendEmpty().SetStr("x")
	list.AppendEmpty().SetEmptyMap().PutInt("k", 1)
	list.AppendEmpty().SetEmptySlice()
	list.AppendEmpty()
	for i := range 2 {
		ss := rs.ScopeSpans().AppendEmpty()
		ss.SetSchemaUrl("https://scope")
		ss.Scope().SetName("lib")
		ss.Scope().SetVersion("1")
		ss.Scope().Attributes().PutStr("s", "v")
		ss.Scope().SetDroppedAttributesCount(2)
		fill(ss.Spans().AppendEmpty())
		if i == 0 {
			ss.Spans().AppendEmpty() // of nothing but defaults
		}
	}
	return td
}

func fill(s ptrace.Span) {
	s.SetTraceID(pcommon.TraceID{15: 0xab})
	s.SetSpanID(pcommon.SpanID{7: 1})
	s.SetParentSpanID(pcommon.SpanID{7: 2})
	s.SetName("op")
	s.SetKind(ptrace.SpanKindServer)
	s.SetFlags(0x101)
	s.TraceState().FromRaw("a=b")
	s.SetStartTimestamp(1)
	s.SetEndTimestamp(math.MaxUint64)
	s.Attributes().PutStr("k", "")
	s.SetDroppedAttributesCount(3)
	s.SetDroppedEventsCount(4)
	s.SetDroppedLinksCount(math.MaxUint32)
	s.Status().SetCode(ptrace.StatusCodeError)
	s.Status().SetMessage("no")
	e := s.Events().AppendEmpty()
	e.SetName("e")
	e.SetTimestamp(5)
	e.SetDroppedAttributesCount(6)
	e.Attributes().PutInt("n", 7)
	s.Events().AppendEmpty()
	l := s.Links().AppendEmpty()
	l.SetTraceID(pcommon.TraceID{1})
	l.SetSpanID(pcommon.SpanID{2})
	l.TraceState().FromRaw("c=d")
	l.SetFlags(1)
	l.SetDroppedAttributesCount(8)
	l.Attributes().PutStr("l", "v")
	s.Links().AppendEmpty()
}

// pdata reads the original request from the JSON.
func TestReadsBack(t *testing.T) {
	td := everything()
	b := encode(t, otlpdata.FromTraces(td, otlpdata.Meta{}))
	got, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(b)
	if err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	if !bytes.Equal(protobuf(t, got), protobuf(t, td)) {
		t.Errorf("pdata reads another request from %s", b)
	}
}

func protobuf(t testing.TB, td ptrace.Traces) []byte {
	t.Helper()
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGolden(t *testing.T) {
	var got bytes.Buffer
	if err := json.Indent(&got, encode(t, otlpdata.FromTraces(everything(), otlpdata.Meta{})), "", "  "); err != nil {
		t.Fatal(err)
	}
	got.WriteByte('\n')
	const file = "testdata/everything.golden.json"
	golden.Check(t, file, got.Bytes())
}

func TestOmittedParts(t *testing.T) {
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty() // without spans
	s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.Attributes().PutInt(otlpdata.FlagsAttribute, 3)
	s.SetName("\xff")
	td.ResourceSpans().AppendEmpty()
	const span = `{"resource":{},"scopeSpans":[{"scope":{},"spans":[{"traceId":"00000000000000000000000000000000","spanId":"0000000000000000",` +
		`"name":"` + "\ufffd" + `","status":{}}]}]}`
	b := otlpdata.FromTraces(td, otlpdata.Meta{})
	if got, want := string(encode(t, b, b)), `{"resourceSpans":[`+span+","+span+"]}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(encode(t)); got != `{"resourceSpans":[]}` {
		t.Errorf("nothing: %s", got)
	}
}

func TestFlush(t *testing.T) {
	b := otlpdata.FromTraces(everything(), otlpdata.Meta{})
	var all []byte
	parts := 0
	w := otlpjson.Writer{Flush: func(b []byte) ([]byte, error) {
		all = append(all, b...)
		parts++
		return b[:0], nil
	}}
	if err := b.Walk(&w); err != nil {
		t.Fatal(err)
	}
	w.End()
	if got := `{"resourceSpans":[` + string(append(all, w.Buf...)) + "]}"; parts != 3 ||
		got != string(encode(t, b)) {
		t.Errorf("%d parts: %s", parts, got)
	}
	gone := errors.New("gone")
	w = otlpjson.Writer{Flush: func(b []byte) ([]byte, error) { return b, gone }}
	if err := b.Walk(&w); err != gone {
		t.Errorf("error %v", err)
	}
}

// FuzzWriter checks that every valid request becomes JSON that pdata reads, with all spans.
func FuzzWriter(f *testing.F) {
	f.Add(protobuf(f, everything()))
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().Attributes().PutStr("\xff", "\xff")
	f.Add(protobuf(f, td))
	f.Fuzz(func(t *testing.T, request []byte) {
		b, err := otlpdata.FromOTLP(request, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil {
			return
		}
		out := encode(t, b)
		if !json.Valid(out) {
			t.Fatalf("not JSON: %s", out)
		}
		got, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(out)
		if err != nil || got.SpanCount() != b.Len() {
			t.Errorf("%v, %d of %d spans from %s", err, got.SpanCount(), b.Len(), out)
		}
	})
}
