package otlpchunks

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// withoutRaw clears Raw, so that the Writer encodes the fields.
type withoutRaw struct{ otlpdata.Visitor }

func (a withoutRaw) Resource(r *otlpdata.Resource) error {
	c := *r
	c.Raw = nil
	return a.Visitor.Resource(&c)
}

func (a withoutRaw) Scope(s *otlpdata.Scope) error {
	c := *s
	c.Raw = nil
	return a.Visitor.Scope(&c)
}

func (a withoutRaw) Span(s *otlpdata.Span) error {
	c := *s
	c.Raw = nil
	return a.Visitor.Span(&c)
}

// lines returns the spans one by one, with their resources and scopes, as pdata's JSON.
func lines(t *testing.T, messages ...[]byte) (out []string) {
	t.Helper()
	for _, m := range messages {
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					out = append(out, line(t, rs, ss, s))
				}
			}
		}
	}
	return out
}

func line(t *testing.T, rs ptrace.ResourceSpans, ss ptrace.ScopeSpans, s ptrace.Span) string {
	t.Helper()
	td := ptrace.NewTraces()
	r := td.ResourceSpans().AppendEmpty()
	rs.Resource().CopyTo(r.Resource())
	r.SetSchemaUrl(rs.SchemaUrl())
	sc := r.ScopeSpans().AppendEmpty()
	ss.Scope().CopyTo(sc.Scope())
	sc.SetSchemaUrl(ss.SchemaUrl())
	s.CopyTo(sc.Spans().AppendEmpty())
	b, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// strict checks that a strict proto3 decoder accepts a message.
func strict(t *testing.T, message []byte) *tracepb.TracesData {
	t.Helper()
	var m tracepb.TracesData
	if err := proto.Unmarshal(message, &m); err != nil {
		t.Fatalf("rejected by a strict decoder: %v", err)
	}
	return &m
}

// check writes a request in messages with a limit and compares the spans with the request's.
func check(t *testing.T, limit int, request []byte) (messages [][]byte) {
	t.Helper()
	want := lines(t, request)
	for _, noRaw := range []bool{false, true} {
		messages = nil
		w := NewWriter(limit, func(m []byte) error { messages = append(messages, []byte(string(m))); return nil })
		var v otlpdata.Visitor = w
		if noRaw {
			v = withoutRaw{w}
		}
		if err := errors.Join(otlpdata.Walk(request, v), w.Finish()); err != nil {
			t.Fatal(err)
		}
		if got := lines(t, messages...); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("without Raw: %v: got\n%s\nwant\n%s", noRaw, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, m := range messages {
			strict(t, m)
			if n := len(lines(t, m)); n == 0 || n > 1 && len(m) > limit {
				t.Errorf("a message of %d spans in %d bytes, limit %d", n, len(m), limit)
			}
		}
	}
	return messages
}

// usual returns a request with several resources and scopes and different content.
func usual(tb testing.TB) []byte {
	tb.Helper()
	td := ptrace.NewTraces()
	for i, service := range []string{"shop", "cart", ""} {
		rs := td.ResourceSpans().AppendEmpty()
		rs.SetSchemaUrl("https://example.com/" + service)
		rs.Resource().SetDroppedAttributesCount(uint32(i))
		rs.Resource().Attributes().PutStr("service.name", service)
		rs.Resource().Attributes().PutEmptySlice("list").AppendEmpty().SetInt(1)
		for range 3 {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName("http" + service)
			ss.Scope().SetVersion(service)
			ss.Scope().SetDroppedAttributesCount(7)
			ss.Scope().Attributes().PutBool("b", true)
			ss.SetSchemaUrl(service)
			for range i + 1 {
				s := ss.Spans().AppendEmpty()
				s.SetName("GET /" + service)
				s.SetTraceID([16]byte{1})
				s.Events().AppendEmpty().SetName("e")
			}
		}
	}
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestWriter(t *testing.T) {
	request := usual(t)
	for _, limit := range []int{0, 1, 100, 200, 500, 1000, 1 << 20} {
		messages := check(t, limit, request)
		switch {
		case limit == 1<<20 && len(messages) != 1:
			t.Errorf("got %d messages, want 1", len(messages))
		case limit <= 1 && len(messages) != 18:
			t.Errorf("got %d messages; the limit is too small for two spans in one", len(messages))
		}
	}
	for r := range bench.New(7, time.Unix(1_800_000_000, 0)).Requests(2000, 500) {
		check(t, 16<<10, r.Body)
	}
	check(t, 100, nil)
}

// Resources and scopes without spans are left out.
func TestEmptyGroups(t *testing.T) {
	w := NewWriter(100, func([]byte) error { t.Error("an empty message"); return nil })
	if err := errors.Join(w.Resource(&otlpdata.Resource{}), w.Scope(&otlpdata.Scope{}), w.Finish()); err != nil {
		t.Error(err)
	}
}

// After an error of send no further message is sent.
func TestStopAfterSendError(t *testing.T) {
	gone, calls := errors.New("gone"), 0
	w := NewWriter(1, func([]byte) error { calls++; return gone })
	if err := otlpdata.Walk(usual(t), w); !errors.Is(err, gone) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// invalid returns a request with invalid UTF-8 in every string.
func invalid(tb testing.TB) []byte {
	tb.Helper()
	const bad = "bad \xff"
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.SetSchemaUrl(bad)
	ss := rs.ScopeSpans().AppendEmpty()
	ss.SetSchemaUrl(bad)
	ss.Scope().SetName(bad)
	ss.Scope().SetVersion(bad)
	s := ss.Spans().AppendEmpty()
	s.SetName(bad)
	s.TraceState().FromRaw(bad)
	s.Status().SetMessage(bad)
	e, l := s.Events().AppendEmpty(), s.Links().AppendEmpty()
	e.SetName(bad)
	l.TraceState().FromRaw(bad)
	for _, m := range []pcommon.Map{rs.Resource().Attributes(), ss.Scope().Attributes(), s.Attributes(), e.Attributes(), l.Attributes()} {
		m.PutStr(bad, bad)
		m.PutEmptySlice("list").AppendEmpty().SetStr(bad)
		m.PutEmptyMap("map").PutStr(bad, "x")
		m.PutEmptyBytes("bytes").FromRaw([]byte(bad))
		m.PutInt(otlpdata.FlagsAttribute, 2)
	}
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Invalid UTF-8 is repaired, and the flags attribute is left out.
func TestRepair(t *testing.T) {
	const good = "bad \uFFFD"
	w := NewWriter(1<<20, func(message []byte) error {
		m := strict(t, message)
		rs := m.ResourceSpans[0]
		ss := rs.ScopeSpans[0]
		s := ss.Spans[0]
		for _, got := range []string{rs.SchemaUrl, ss.SchemaUrl, ss.Scope.Name, ss.Scope.Version, s.Name, s.TraceState, s.Status.Message,
			s.Events[0].Name, s.Links[0].TraceState} {
			if got != good {
				t.Errorf("%q", got)
			}
		}
		for _, kvs := range [][]*commonpb.KeyValue{rs.Resource.Attributes, ss.Scope.Attributes, s.Attributes, s.Events[0].Attributes,
			s.Links[0].Attributes} {
			if len(kvs) != 4 || kvs[0].Key != good || kvs[0].Value.GetStringValue() != good ||
				kvs[1].Value.GetStringValue() != "[\"bad \uFFFD\"]" ||
				kvs[2].Value.GetStringValue() != "{\"bad \uFFFD\":\"x\"}" || string(kvs[3].Value.GetBytesValue()) != "bad \xff" {
				t.Errorf("%v", kvs)
			}
		}
		return nil
	})
	if err := errors.Join(otlpdata.Walk(invalid(t), w), w.Finish()); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkWriter(b *testing.B) {
	var bodies [][]byte
	spans := 0
	for r := range bench.New(7, time.Unix(1_800_000_000, 0)).Requests(10_000, 512) {
		bodies, spans = append(bodies, r.Body), spans+r.Spans
	}
	w := NewWriter(1<<20, func([]byte) error { return nil })
	for name, v := range map[string]otlpdata.Visitor{"as they are": w, "noRaw": withoutRaw{w}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, body := range bodies {
					if err := errors.Join(otlpdata.Walk(body, v), w.Finish()); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*spans), "ns/span")
		})
	}
}

func FuzzWriter(f *testing.F) {
	f.Add(usual(f), uint16(300))
	f.Add([]byte("\x0a\x04\x12\x02\x12\x00\x0a\x04\x12\x02\x12\x00"), uint16(0))
	f.Add(invalid(f), uint16(0))
	f.Fuzz(func(t *testing.T, in []byte, limit uint16) {
		b, err := otlpdata.FromOTLP(in, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil {
			return
		}
		// References to a dictionary are for profiles, and are not kept.
		var decoded tracepb.TracesData
		if err := proto.Unmarshal(in, &decoded); err == nil && !bytes.Contains(in, []byte(otlpdata.FlagsAttribute)) &&
			!strings.Contains(decoded.String(), "strindex") {
			check(t, int(limit), in)
			return
		}
		spans := 0
		w := NewWriter(int(limit), func(m []byte) error {
			for _, rs := range strict(t, m).ResourceSpans {
				for _, ss := range rs.ScopeSpans {
					spans += len(ss.Spans)
				}
			}
			return nil
		})
		if err := errors.Join(otlpdata.Walk(in, w), w.Finish()); err != nil || spans != b.Len() {
			t.Fatalf("%d of %d spans, %v", spans, b.Len(), err)
		}
	})
}
