package uijson_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/internal/translate/uijson"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The JSON for a client. Decoding rejects unknown members and keeps the digits of numbers.
type (
	trace struct {
		TraceID   string             `json:"traceID"`
		Spans     []span             `json:"spans"`
		Processes map[string]process `json:"processes"`
		Warnings  []string           `json:"warnings"`
	}
	span struct {
		TraceID       string      `json:"traceID"`
		SpanID        string      `json:"spanID"`
		Flags         int         `json:"flags"`
		OperationName string      `json:"operationName"`
		References    []reference `json:"references"`
		StartTime     uint64      `json:"startTime"`
		Duration      uint64      `json:"duration"`
		Tags          []tag       `json:"tags"`
		Logs          []logEntry  `json:"logs"`
		ProcessID     string      `json:"processID"`
		Warnings      []string    `json:"warnings"`
	}
	reference struct{ RefType, TraceID, SpanID string }
	process   struct {
		ServiceName string `json:"serviceName"`
		Tags        []tag  `json:"tags"`
	}
	logEntry struct {
		Timestamp uint64 `json:"timestamp"`
		Fields    []tag  `json:"fields"`
	}
	tag struct {
		Key   string `json:"key"`
		Type  string `json:"type"`
		Value any    `json:"value"`
	}
)

func encode(t testing.TB, opt uijson.Options, tds ...ptrace.Traces) []byte {
	t.Helper()
	var batches []*otlpdata.Batch
	for _, td := range tds {
		batches = append(batches, otlpdata.FromTraces(td, otlpdata.Meta{}))
	}
	b, err := uijson.AppendTrace(nil, opt, batches...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func show(t testing.TB, opt uijson.Options, tds ...ptrace.Traces) trace {
	t.Helper()
	b := encode(t, opt, tds...)
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	d.DisallowUnknownFields()
	var tr trace
	if err := d.Decode(&tr); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return tr
}

var raw = uijson.Options{Options: adjust.Options{Raw: true}}

// one returns a request with one span, and the span.
func one() (ptrace.Traces, ptrace.Span) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "cart")
	return td, add(rs.ScopeSpans().AppendEmpty(), 1, 0)
}

func add(ss ptrace.ScopeSpans, id, parent byte) ptrace.Span {
	s := ss.Spans().AppendEmpty()
	s.SetTraceID(pcommon.TraceID{15: 9})
	s.SetSpanID(pcommon.SpanID{7: id})
	s.SetParentSpanID(pcommon.SpanID{7: parent})
	s.SetName("op")
	s.SetStartTimestamp(1_700_000_000_000_001_999)
	s.SetEndTimestamp(1_700_000_000_000_005_000)
	return s
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// everything returns a trace with a value for every field of the JSON.
func everything() ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "cart")
	rs.Resource().Attributes().PutStr("host.name", "h1")
	rs.Resource().Attributes().PutInt("process.pid", 7)
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("lib")
	ss.Scope().SetVersion("1.2")
	ss.Scope().Attributes().PutStr("lost", "x")
	s := add(ss, 2, 1)
	s.SetTraceID(pcommon.TraceID{0: 1, 15: 9})
	s.SetName("GET /<cart>")
	s.SetKind(ptrace.SpanKindServer)
	s.SetFlags(0x101)
	s.TraceState().FromRaw("vendor=1")
	s.Status().SetCode(ptrace.StatusCodeError)
	s.Status().SetMessage("no \"stock\"")
	a := s.Attributes()
	a.PutStr("url.path", "/cart")
	a.PutInt("big", 1<<53)
	a.PutBool("cached", true)
	a.PutDouble("load", 0.25)
	a.PutEmptyBytes("bin").FromRaw([]byte{0, 255})
	a.PutEmptySlice("list").AppendEmpty().SetStr("a")
	a.PutEmptyMap("map").PutInt("k", 1)
	a.PutEmpty("nothing")
	a.PutEmptySlice("@jaeger@warnings").AppendEmpty().SetStr("came with a warning")
	e := s.Events().AppendEmpty()
	e.SetName("exception")
	e.SetTimestamp(1_700_000_000_000_002_500)
	e.Attributes().PutStr("message", "boom")
	e.Attributes().PutInt("attempt", 2)
	l := s.Links().AppendEmpty()
	l.SetTraceID(pcommon.TraceID{15: 3})
	l.SetSpanID(pcommon.SpanID{7: 4})
	add(ss, 3, 2).SetTraceID(pcommon.TraceID{0: 1, 15: 9})
	return td
}

// Flags are shown as a number, and the attribute that carries them is hidden.
func TestFlags(t *testing.T) {
	f := func(want int, set func(s ptrace.Span)) {
		t.Helper()
		td, s := one()
		s.Attributes().PutStr("k", "v")
		set(s)
		for _, opt := range []uijson.Options{{}, raw} {
			got := show(t, opt, td).Spans[0]
			equal(t, "flags", got.Flags, want)
			equal(t, "tags", got.Tags, []tag{{"k", "string", "v"}})
		}
	}
	f(0, func(s ptrace.Span) {})
	f(1, func(s ptrace.Span) { s.SetFlags(0x301) }) // the other bits have another meaning
	f(3, func(s ptrace.Span) { s.Attributes().PutInt(otlpdata.FlagsAttribute, 3) })
	f(0, func(s ptrace.Span) { s.SetFlags(1); s.Attributes().PutInt(otlpdata.FlagsAttribute, 0) })
	f(math.MaxUint32, func(s ptrace.Span) { s.Attributes().PutInt(otlpdata.FlagsAttribute, -1) })
	f(1, func(s ptrace.Span) { s.SetFlags(1); s.Attributes().PutStr(otlpdata.FlagsAttribute, "2") })
}

func TestGolden(t *testing.T) {
	for name, opt := range map[string]uijson.Options{"raw": raw, "adjusted": {}} {
		var got bytes.Buffer
		if err := json.Indent(&got, encode(t, opt, everything()), "", "  "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
		file := filepath.Join("testdata", "everything-"+name+".golden.json")
		golden.Check(t, file, got.Bytes())
	}
}

func TestValueTypes(t *testing.T) {
	f := func(want tag, put func(pcommon.Value)) {
		t.Helper()
		td, s := one()
		put(s.Attributes().PutEmpty("k"))
		want.Key = "k"
		equal(t, "tag", show(t, raw, td).Spans[0].Tags, []tag{want})
	}
	n := func(s string) json.Number { return json.Number(s) }
	f(tag{Type: "string", Value: "a\"\n<b>\u2028"}, func(v pcommon.Value) { v.SetStr("a\"\n<b>\u2028") })
	f(tag{Type: "bool", Value: false}, func(v pcommon.Value) { v.SetBool(false) })
	f(tag{Type: "int64", Value: n("-5")}, func(v pcommon.Value) { v.SetInt(-5) })
	f(tag{Type: "int64", Value: n("9007199254740991")}, func(v pcommon.Value) { v.SetInt(1<<53 - 1) })
	f(tag{Type: "int64", Value: n("-9007199254740991")}, func(v pcommon.Value) { v.SetInt(1 - 1<<53) })
	f(tag{Type: "int64", Value: "9007199254740992"}, func(v pcommon.Value) { v.SetInt(1 << 53) })
	f(tag{Type: "int64", Value: "-9223372036854775808"}, func(v pcommon.Value) { v.SetInt(math.MinInt64) })
	f(tag{Type: "float64", Value: n("0.1")}, func(v pcommon.Value) { v.SetDouble(0.1) })
	f(tag{Type: "float64", Value: "NaN"}, func(v pcommon.Value) { v.SetDouble(math.NaN()) })
	f(tag{Type: "float64", Value: "+Inf"}, func(v pcommon.Value) { v.SetDouble(math.Inf(1)) })
	f(tag{Type: "float64", Value: "-Inf"}, func(v pcommon.Value) { v.SetDouble(math.Inf(-1)) })
	f(tag{Type: "binary", Value: "+/8="}, func(v pcommon.Value) { v.SetEmptyBytes().FromRaw([]byte{0xfb, 0xff}) })
	f(tag{Type: "binary", Value: "gGE="}, func(v pcommon.Value) { v.SetStr("\x80a") })
	f(tag{Type: "string", Value: ""}, func(pcommon.Value) {})
	f(tag{Type: "string", Value: `["a",1,{"b":true}]`}, func(v pcommon.Value) {
		s := v.SetEmptySlice()
		s.AppendEmpty().SetStr("a")
		s.AppendEmpty().SetInt(1)
		s.AppendEmpty().SetEmptyMap().PutBool("b", true)
	})
}

func TestInvalidUTF8(t *testing.T) {
	td, s := one()
	s.SetName("n\xff")
	s.Status().SetMessage("m\xff")
	s.Attributes().PutInt("k\xff", 1)
	s.Attributes().PutEmptyBytes("l\xff").FromRaw([]byte{'b'})
	s.Events().AppendEmpty().SetName("e\xff")
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.name", "s\xff")
	tr := show(t, raw, td)
	got := tr.Spans[0]
	equal(t, "name", got.OperationName, "invalid-span-name")
	equal(t, "tags", got.Tags, []tag{
		{"invalid-tag-key-1", "binary", "a/86MQ=="},
		{"invalid-tag-key-2", "binary", "bP86Yg=="},
		{"invalid-span-name", "binary", "bv8="},
		{"otel.status_description", "binary", "bf8="},
	})
	equal(t, "log", got.Logs[0].Fields, []tag{{"event", "binary", "Zf8="}})
	equal(t, "service", tr.Processes["p1"].ServiceName, "s\ufffd")
}

func TestMissingNames(t *testing.T) {
	f := func(want string, set func(pcommon.Map)) {
		t.Helper()
		td, s := one()
		s.SetName("")
		a := td.ResourceSpans().At(0).Resource().Attributes()
		a.Remove("service.name")
		set(a)
		tr := show(t, raw, td)
		equal(t, "name", tr.Spans[0].OperationName, "empty-span-name")
		equal(t, "process", tr.Processes["p1"].ServiceName, want)
	}
	f("missing-service-name", func(pcommon.Map) {})
	f("missing-service-name", func(a pcommon.Map) { a.PutStr("k", "v") })
	f("service-name-wrong-type", func(a pcommon.Map) { a.PutInt("service.name", 1) })
	f("empty-service-name", func(a pcommon.Map) { a.PutStr("service.name", "") })
}

func TestTimes(t *testing.T) {
	f := func(start, end, wantStart, wantDuration uint64, wantWarnings []string) {
		t.Helper()
		td, s := one()
		s.SetStartTimestamp(pcommon.Timestamp(start))
		s.SetEndTimestamp(pcommon.Timestamp(end))
		got := show(t, uijson.Options{}, td).Spans[0]
		equal(t, "start", got.StartTime, wantStart)
		equal(t, "duration", got.Duration, wantDuration)
		equal(t, "warnings", got.Warnings, wantWarnings)
	}
	f(0, 0, 0, 0, nil)
	f(1999, 4000, 1, 2, nil)
	f(5000, 5000, 5, 0, nil)
	f(math.MaxUint64-1, math.MaxUint64, math.MaxUint64/1000, 0, nil)
	f(1_700_000_000_000_000_000, 1_600_000_000_000_000_000, 1_700_000_000_000_000, 0, []string{"Negative duration detected, " +
		"sanitizing end timestamp. Original end timestamp: 2020-09-13 12:26:40 +0000 UTC, adjusted to: 2023-11-14 22:13:20.000000001 +0000 UTC"})
}

func TestReferences(t *testing.T) {
	type l struct {
		trace, span byte
		refType     string
	}
	f := func(parent byte, links []l, want ...reference) {
		t.Helper()
		td, s := one()
		s.SetParentSpanID(pcommon.SpanID{7: parent})
		for _, in := range links {
			out := s.Links().AppendEmpty()
			out.SetTraceID(pcommon.TraceID{15: in.trace})
			out.SetSpanID(pcommon.SpanID{7: in.span})
			if in.refType != "" {
				out.Attributes().PutStr("opentracing.ref_type", in.refType)
			}
		}
		got := show(t, raw, td).Spans[0].References
		if got == nil {
			t.Error("references are null")
		}
		equal(t, "references", got, append([]reference{}, want...))
	}
	ref := func(typ, trace, span string) reference {
		return reference{typ, "000000000000000" + trace, "000000000000000" + span}
	}
	f(0, nil)
	f(5, nil, ref("CHILD_OF", "9", "5"))
	f(5, []l{{8, 6, ""}}, ref("CHILD_OF", "9", "5"), ref("FOLLOWS_FROM", "8", "6"))
	f(5, []l{{8, 6, "child_of"}}, ref("CHILD_OF", "9", "5"), ref("CHILD_OF", "8", "6"))
	f(5, []l{{9, 5, ""}}, ref("FOLLOWS_FROM", "9", "5"))
	f(5, []l{{9, 5, "child_of"}, {9, 6, "follows_from"}}, ref("CHILD_OF", "9", "5"), ref("FOLLOWS_FROM", "9", "6"))
	f(5, []l{{8, 5, ""}}, ref("CHILD_OF", "9", "5"), ref("FOLLOWS_FROM", "8", "5"))
	f(0, []l{{9, 0, ""}, {0, 0, ""}}, ref("FOLLOWS_FROM", "9", "0"), ref("FOLLOWS_FROM", "0", "0"))
}

func TestStatusAndKind(t *testing.T) {
	f := func(kind ptrace.SpanKind, code ptrace.StatusCode, want ...tag) {
		t.Helper()
		td, s := one()
		s.SetKind(kind)
		s.Status().SetCode(code)
		equal(t, "tags", show(t, raw, td).Spans[0].Tags, append([]tag{}, want...))
	}
	f(0, ptrace.StatusCodeUnset)
	f(77, 77)
	f(ptrace.SpanKindInternal, 0, tag{"span.kind", "string", "internal"})
	f(ptrace.SpanKindClient, 0, tag{"span.kind", "string", "client"})
	f(ptrace.SpanKindProducer, 0, tag{"span.kind", "string", "producer"})
	f(ptrace.SpanKindConsumer, 0, tag{"span.kind", "string", "consumer"})
	f(ptrace.SpanKindServer, ptrace.StatusCodeOk, tag{"span.kind", "string", "server"}, tag{"otel.status_code", "string", "OK"})
	f(0, ptrace.StatusCodeError, tag{"otel.status_code", "string", "ERROR"}, tag{"error", "bool", true})
}

func TestLogs(t *testing.T) {
	td, s := one()
	e := s.Events().AppendEmpty()
	e.SetTimestamp(1999)
	e.SetName("name")
	e.Attributes().PutStr("zone", "z")
	e.Attributes().PutStr("event", "attribute wins")
	e.Attributes().PutStr("area", "a")
	s.Events().AppendEmpty()
	want := []logEntry{{1, []tag{{"zone", "string", "z"}, {"event", "string", "attribute wins"}, {"area", "string", "a"}}}, {0, []tag{}}}
	equal(t, "raw logs", show(t, raw, td).Spans[0].Logs, want)
	want[0].Fields = []tag{{"event", "string", "attribute wins"}, {"area", "string", "a"}, {"zone", "string", "z"}}
	equal(t, "logs", show(t, uijson.Options{}, td).Spans[0].Logs, want)
}

func TestProcessesAreSharedWhenEqual(t *testing.T) {
	td := ptrace.NewTraces()
	for i, keys := range [][]string{{"a", "b"}, {"unused"}, {"c"}, {"b", "a"}, {"a", "b"}} {
		rs := td.ResourceSpans().AppendEmpty()
		for _, k := range keys {
			rs.Resource().Attributes().PutStr(k, "v")
		}
		if keys[0] != "unused" {
			add(rs.ScopeSpans().AppendEmpty(), byte(i+1), 0)
		}
	}
	ids := func(tr trace) (out []string) {
		for _, s := range tr.Spans {
			out = append(out, s.ProcessID)
		}
		return out
	}
	equal(t, "adjusted", ids(show(t, uijson.Options{}, td)), []string{"p1", "p2", "p1", "p1"})
	equal(t, "raw", ids(show(t, raw, td)), []string{"p1", "p2", "p3", "p1"})
	equal(t, "processes", len(show(t, raw, td).Processes), 3)
}

func TestNoSpans(t *testing.T) {
	equal(t, "JSON", string(encode(t, uijson.Options{})), `{"traceID":"","spans":[],"processes":{},"warnings":null}`)
}

func TestMaxSpans(t *testing.T) {
	td, _ := one()
	ss := td.ResourceSpans().At(0).ScopeSpans().At(0)
	add(ss, 2, 1)
	more := ptrace.NewTraces()
	td.CopyTo(more)
	f := func(opt uijson.Options, spans int, warning string) {
		t.Helper()
		tr := show(t, opt, td, more)
		equal(t, "spans", len(tr.Spans), spans)
		equal(t, "warning", strings.Join(tr.Spans[0].Warnings, ","), warning)
	}
	f(uijson.Options{Options: adjust.Options{Raw: true, MaxSpans: 4}}, 4, "")
	f(uijson.Options{Options: adjust.Options{Raw: true, MaxSpans: 3}}, 3, "trace has more than 3 spans, showing first 3 spans only")
	f(uijson.Options{Options: adjust.Options{MaxSpans: 1}}, 1, "trace has more than 1 spans, showing first 1 spans only")
}

// Strings are checked in pieces of eight bytes: every special byte must be found at every position.
func TestEveryByteAtEveryPosition(t *testing.T) {
	for c := range 256 {
		for at := range 17 {
			b := []byte("0123456789abcdefg")
			b[at] = byte(c)
			td, s := one()
			s.Attributes().PutStr("k", string(b))
			want := tag{"k", "string", string(b)}
			if c >= 0x80 {
				want = tag{"k", "binary", base64.StdEncoding.EncodeToString(b)}
			}
			equal(t, "tag", show(t, raw, td).Spans[0].Tags[0], want)
		}
	}
}

func TestFlush(t *testing.T) {
	td, _ := one()
	add(td.ResourceSpans().At(0).ScopeSpans().At(0), 2, 1)
	want := string(encode(t, uijson.Options{}, td))
	var parts []string
	opt := uijson.Options{Flush: func(dst []byte) ([]byte, error) {
		parts = append(parts, string(dst))
		return dst[:0], nil
	}}
	rest := string(encode(t, opt, td))
	equal(t, "parts, two spans and the process", len(parts), 3)
	equal(t, "JSON", strings.Join(parts, "")+rest, want)

	gone := errors.New("gone")
	opt.Flush = func(dst []byte) ([]byte, error) { return dst, gone }
	if _, err := uijson.AppendTrace(nil, opt, otlpdata.FromTraces(td, otlpdata.Meta{})); err != gone {
		t.Errorf("error %v", err)
	}
}
