package native

import (
	"errors"
	"flag"
	"math"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

var updateOutgoing = flag.Bool("update-outgoing", false, "rewrite testdata/outgoing.golden")

const second = 1_000_000_000

// outgoingCase is a request of one span, unless build adds more.
type outgoingCase struct {
	name  string
	build func(ptrace.ResourceSpans, ptrace.ScopeSpans, ptrace.Span)
}

func outgoingCases() []outgoingCase {
	type (
		resource = ptrace.ResourceSpans
		scope    = ptrace.ScopeSpans
		span     = ptrace.Span
	)
	return []outgoingCase{
		{"a usual span", func(r resource, sc scope, s span) {
			r.Resource().Attributes().PutStr("host.name", "a")
			sc.Scope().SetName("http")
			sc.Scope().SetVersion("1.2")
			s.SetParentSpanID([8]byte{7: 2})
			s.SetFlags(0x301)
			s.Attributes().PutStr("http.request.method", "GET")
			s.SetKind(ptrace.SpanKindServer)
			s.Status().SetCode(ptrace.StatusCodeError)
			s.Status().SetMessage("broken")
			s.TraceState().FromRaw("a=b")
		}},
		{"every type of value", func(_ resource, _ scope, s span) { everyType(s.Attributes()) }},
		{"a resource without attributes", func(r resource, _ scope, _ span) { r.Resource().Attributes().Clear() }},
		{"a resource without a service", func(r resource, _ scope, _ span) {
			r.Resource().Attributes().Clear()
			r.Resource().Attributes().PutStr("host.name", "a")
		}},
		{"a service that is a number", func(r resource, _ scope, _ span) { r.Resource().Attributes().PutInt("service.name", 7) }},
		{"ok, consumer, version only", func(_ resource, sc scope, s span) {
			sc.Scope().SetVersion("1")
			s.Status().SetCode(ptrace.StatusCodeOk)
			s.SetKind(ptrace.SpanKindConsumer)
		}},
		{"what OTLP does not define", func(_ resource, _ scope, s span) {
			s.SetKind(17)
			s.Status().SetCode(17)
		}},
		{"links", func(_ resource, _ scope, s span) {
			s.SetParentSpanID([8]byte{7: 2})
			link(s, 9, 1, "")
			link(s, 9, 2, "child_of")
			link(s, 1, 3, "follows_from")
		}},
		{"a link to the parent", func(_ resource, _ scope, s span) {
			s.SetParentSpanID([8]byte{7: 2})
			link(s, 1, 2, "")
		}},
		{"a link to the parent that says so", func(_ resource, _ scope, s span) {
			s.SetParentSpanID([8]byte{7: 2})
			link(s, 1, 2, "child_of")
		}},
		{"events", func(_ resource, _ scope, s span) {
			event(s, "exception").PutStr("exception.message", "broken")
			event(s, "").PutInt("n", 1)
			event(s, "same").PutStr("event", "same")
			event(s, "name").PutStr("event", "another")
			event(s, "")
		}},
		{"native flags and warnings", func(_ resource, _ scope, s span) {
			s.Attributes().PutInt(otlpdata.FlagsAttribute, 11)
			w := s.Attributes().PutEmptySlice("@jaeger@warnings")
			w.AppendEmpty().SetStr("clock skew")
			w.AppendEmpty().SetStr("")
			w.AppendEmpty().SetStr("caf\xe9")
		}},
		{"warnings that are no list", func(_ resource, _ scope, s span) { s.Attributes().PutStr("@jaeger@warnings", "clock skew") }},
		{"times", func(_ resource, sc scope, s span) {
			s.SetStartTimestamp(0)
			s.SetEndTimestamp(0)
			times := [][2]pcommon.Timestamp{{2 * second, second/2 + 1}, {0, math.MaxUint64}, {math.MaxUint64, 0}, {math.MaxUint64, math.MaxUint64}}
			for _, tt := range times {
				more := sc.Spans().AppendEmpty()
				more.SetStartTimestamp(tt[0])
				more.SetEndTimestamp(tt[1])
			}
		}},
		{"no UTF-8", func(r resource, sc scope, s span) {
			r.Resource().Attributes().PutStr("service.name", "caf\xe9")
			sc.Scope().SetName("caf\xe9")
			s.SetName("caf\xe9")
			s.Attributes().PutStr("menu", "caf\xe9")
			s.Attributes().PutStr("caf\xe9", "menu")
			s.Attributes().PutBool("t\xe9", true)
			s.Attributes().PutEmptySlice("list").AppendEmpty().SetStr("caf\xe9")
			s.Status().SetMessage("caf\xe9")
			s.TraceState().FromRaw("caf\xe9")
			event(s, "caf\xe9").PutStr("caf\xe9", "menu")
		}},
		{"zero ids", func(_ resource, _ scope, s span) {
			s.SetTraceID(pcommon.TraceID{})
			s.SetSpanID(pcommon.SpanID{})
			s.SetName("")
			link(s, 0, 3, "")
		}},
	}
}

func everyType(to pcommon.Map) {
	to.PutStr("string", "x")
	to.PutStr("no string", "")
	to.PutBool("true", true)
	to.PutBool("false", false)
	to.PutInt("int", -3)
	to.PutInt("zero", 0)
	to.PutDouble("double", 2.5)
	to.PutDouble("no double", 0)
	to.PutEmptyBytes("bytes").FromRaw([]byte{0, 255})
	to.PutEmptyBytes("no bytes")
	to.PutEmpty("empty")
	to.PutEmpty("")
	list := to.PutEmptySlice("list")
	list.AppendEmpty().SetStr("a")
	list.AppendEmpty().SetInt(1)
	to.PutEmptyMap("map").PutEmptyMap("in").PutDouble("x", 1.5)
	to.PutStr("long", strings.Repeat("long ", 50))
}

func link(s ptrace.Span, trace, span byte, typ string) {
	l := s.Links().AppendEmpty()
	l.SetTraceID([16]byte{15: trace})
	l.SetSpanID([8]byte{7: span})
	if typ != "" {
		l.Attributes().PutStr("opentracing.ref_type", typ)
	}
}

func event(s ptrace.Span, name string) pcommon.Map {
	e := s.Events().AppendEmpty()
	e.SetTimestamp(pcommon.Timestamp(3*second + 7))
	e.SetName(name)
	return e.Attributes()
}

// one returns a request of one span.
func one(build func(ptrace.ResourceSpans, ptrace.ScopeSpans, ptrace.Span)) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "shop")
	ss := rs.ScopeSpans().AppendEmpty()
	s := ss.Spans().AppendEmpty()
	s.SetName("GET /cart")
	s.SetTraceID([16]byte{15: 1})
	s.SetSpanID([8]byte{7: 1})
	s.SetStartTimestamp(1_700_000_000*second + 5)
	s.SetEndTimestamp(1_700_000_001*second + 7)
	build(rs, ss, s)
	return td
}

func encoded(t testing.TB, td ptrace.Traces) []byte {
	t.Helper()
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func outgoing(t testing.TB, chunks ...[]byte) []byte {
	t.Helper()
	request, err := appendPostSpans([]byte("before"), chunks)
	if err != nil {
		t.Fatal(err)
	}
	after, ok := strings.CutPrefix(string(request), "before")
	if !ok {
		t.Fatal("SplitPostSpans overwrote the bytes in the buffer")
	}
	return []byte(after)
}

func TestOutgoingGolden(t *testing.T) {
	const file = "testdata/outgoing.golden"
	var got strings.Builder
	for _, c := range outgoingCases() {
		got.WriteString("# " + c.name + "\n")
		got.WriteString(describe(decodeRequest(t, outgoing(t, encoded(t, one(c.build))))) + "\n")
	}
	if *updateOutgoing {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wants := strings.Split(string(want), "\n\n")
	for i, text := range strings.Split(got.String(), "\n\n") {
		if i >= len(wants) || text != wants[i] {
			t.Errorf("got\n%s\nwhich differs from %s", text, file)
		}
	}
}

// service returns a request of n spans of a service whose process is padded to a size.
func service(t testing.TB, name string, n, padding int) []byte {
	t.Helper()
	return encoded(t, one(func(r ptrace.ResourceSpans, ss ptrace.ScopeSpans, s ptrace.Span) {
		r.Resource().Attributes().PutStr("service.name", name)
		r.Resource().Attributes().PutStr("padding", strings.Repeat("x", padding))
		for range n - 1 {
			s.CopyTo(ss.Spans().AppendEmpty())
		}
	}))
}

// servicesOf returns the number of spans of each service in a request, and how many spans carry a
// process.
func servicesOf(t testing.TB, request []byte) (services map[string]int, carried int) {
	b := decodeRequest(t, request)
	services = map[string]int{}
	for _, s := range b.GetSpans() {
		if p := s.GetProcess(); p != nil {
			carried++
			services[p.GetServiceName()]++
			continue
		}
		services[b.GetProcess().GetServiceName()]++
	}
	return services, carried
}

func TestSpansCarryOtherProcesses(t *testing.T) {
	services, carried := servicesOf(t, outgoing(t, service(t, "a", 3, 0), service(t, "b", 2, 0), service(t, "a", 4, 0)))
	if services["a"] != 7 || services["b"] != 2 || carried != 2 {
		t.Errorf("got spans %v, %d with a process", services, carried)
	}
}

// split returns the requests for chunks with a limit in bytes.
func split(t testing.TB, limit int, chunks ...[]byte) (requests [][]byte) {
	t.Helper()
	err := SplitPostSpans(batchOf(chunks...), limit, func() []byte { return nil }, func(request []byte, spans int) error {
		if n := len(decodeRequest(t, request).GetSpans()); n != spans {
			t.Errorf("a request of %d spans was sent as %d spans", n, spans)
		}
		requests = append(requests, request)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

func TestSplitPostSpans(t *testing.T) {
	for _, limit := range []int{1, 200, 1000, 5000, math.MaxInt} {
		requests := split(t, limit, service(t, "a", 30, 50), service(t, "b", 20, 50))
		all := map[string]int{}
		for i, r := range requests {
			services, _ := servicesOf(t, r)
			for name, n := range services {
				all[name] += n
			}
			if spans := len(decodeRequest(t, r).GetSpans()); len(r) > limit && spans > 1 {
				t.Errorf("limit %d: request %d of %d spans has %d bytes", limit, i, spans, len(r))
			}
		}
		if all["a"] != 30 || all["b"] != 20 {
			t.Errorf("limit %d: %v", limit, all)
		}
		if most := 1 + (50*250)/limit; len(requests) > max(most, 1) && limit > 1 {
			t.Errorf("limit %d: %d requests", limit, len(requests))
		}
	}
	if n := len(split(t, 100)) + len(split(t, 100, nil, encoded(t, ptrace.NewTraces()))); n != 0 {
		t.Errorf("no spans make %d requests", n)
	}
	stop := errors.New("stop")
	sent := 0
	err := SplitPostSpans(batchOf(service(t, "a", 30, 50)), 300, func() []byte { return nil }, func([]byte, int) error {
		sent++
		return stop
	})
	if err != stop || sent != 1 {
		t.Errorf("error %v after %d requests", err, sent)
	}
}

// Small inputs do not become large outputs.
func TestOutgoingDoesNotAmplify(t *testing.T) {
	t.Run("process", func(t *testing.T) {
		in := [][]byte{service(t, "a", 1, 0), service(t, "b", 5000, 300<<10)}
		total := 0
		requests := split(t, math.MaxInt, in...)
		for _, r := range requests {
			total += len(r)
		}
		if most := 3 * (len(in[0]) + len(in[1])); len(requests) != 2 || total > most {
			t.Errorf("%d requests of %d bytes, want 2 of at most %d", len(requests), total, most)
		}
	})
	t.Run("scope", func(t *testing.T) {
		scoped := func(spans, name int) error {
			td := one(func(_ ptrace.ResourceSpans, ss ptrace.ScopeSpans, _ ptrace.Span) {
				ss.Scope().SetName(strings.Repeat("x", name))
				for range spans - 1 {
					ss.Spans().AppendEmpty()
				}
			})
			_, err := appendPostSpans(nil, [][]byte{encoded(t, td)})
			return err
		}
		if err := scoped(20_000, 900); err != nil {
			t.Error(err)
		}
		if err := scoped(3, 1<<20); err != nil {
			t.Error(err)
		}
		if err := scoped(1000, 64<<10); !errors.Is(err, errScopes) {
			t.Errorf("error %v", err)
		}
	})
}

func TestOutgoingAllocatesNothingPerSpan(t *testing.T) {
	request := [][]byte{encoded(t, one(func(_ ptrace.ResourceSpans, ss ptrace.ScopeSpans, s ptrace.Span) {
		s.Attributes().PutStr("http.request.method", "GET")
		event(s, "exception").PutInt("n", 1)
		link(s, 1, 3, "")
		for range 999 {
			s.CopyTo(ss.Spans().AppendEmpty())
		}
	}))}
	var dst []byte
	allocations := testing.AllocsPerRun(5, func() {
		var err error
		if dst, err = appendPostSpans(dst[:0], request); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 100 {
		t.Errorf("%g allocations for 1000 spans", allocations)
	}
}

func TestInvalidChunks(t *testing.T) {
	dst := []byte("before")
	if got, err := appendPostSpans(dst, [][]byte{{0xff}}); err == nil || string(got) != "before" {
		t.Errorf("%q, error %v", got, err)
	}
}

// FuzzOutgoing checks that every valid request becomes requests that a strict decoder accepts, with
// all spans.
func FuzzOutgoing(f *testing.F) {
	for _, c := range outgoingCases() {
		f.Add(encoded(f, one(c.build)), 100)
	}
	f.Add([]byte("\x0a\x04\x12\x02\x12\x00\x0a\x04\x12\x02\x12\x00"), 0)
	f.Fuzz(func(t *testing.T, request []byte, limit int) {
		b, err := otlpdata.FromOTLP(request, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil {
			return // not a valid request
		}
		whole, err := appendPostSpans(nil, [][]byte{request})
		if errors.Is(err, errScopes) {
			return
		}
		if err != nil {
			t.Fatalf("cannot translate a valid request: %v", err)
		}
		spans := resolved(decodeRequest(t, whole))
		if len(spans) != b.Len() {
			t.Fatalf("got %d of %d spans", len(spans), b.Len())
		}
		checkReadable(t, whole, b.Len())
		var parts []string
		for _, r := range split(t, max(limit, 0), request) {
			some := resolved(decodeRequest(t, r))
			if len(r) > limit && len(some) > 1 {
				t.Fatalf("%d spans in %d bytes, limit %d", len(some), len(r), limit)
			}
			parts = append(parts, some...)
		}
		if strings.Join(parts, "") != strings.Join(spans, "") {
			t.Fatal("split requests contain other spans than one request")
		}
	})
}
