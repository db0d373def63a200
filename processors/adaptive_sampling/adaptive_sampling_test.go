package adaptivesampling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is the observer and the consumer of a processor under test.
type recorder struct {
	seen   []string
	passed *otlpdata.Batch
	err    error
}

func (r *recorder) Observe(tenant string, roots []sampling.Root) {
	for _, root := range roots {
		r.seen = append(r.seen, fmt.Sprint(tenant, root))
	}
}

func (r *recorder) Consume(_ context.Context, b *otlpdata.Batch) error {
	r.passed = b
	return r.err
}

// consume sends n spans of a service, modified by each, and returns what was recorded.
func consume(t *testing.T, service string, each func(ptrace.Span), n int) (*recorder, *otlpdata.Batch) {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	if service != "" {
		rs.Resource().Attributes().PutStr("service.name", service)
	}
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for range n {
		s := spans.AppendEmpty()
		s.SetName("GET /")
		each(s)
	}
	l := &recorder{}
	b := otlpdata.FromTraces(td, otlpdata.Meta{Tenant: "t"})
	if err := New(l, l).Consume(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return l, b
}

func TestObservedRoots(t *testing.T) {
	f := func(name, want string, each func(pcommon.Map, ptrace.Span)) {
		t.Helper()
		l, b := consume(t, "cart", func(s ptrace.Span) { each(s.Attributes(), s) }, 1)
		if got := fmt.Sprint(l.seen); got != "["+want+"]" || l.passed != b {
			t.Errorf("%s: %s, want [%s]", name, got, want)
		}
	}
	f("native", "t{cart GET / probabilistic 0.5}", func(a pcommon.Map, _ ptrace.Span) {
		a.PutStr("sampler.type", "probabilistic")
		a.PutDouble("sampler.param", 0.5)
	})
	f("OpenTelemetry", "t{cart GET / ratelimiting 7}", func(a pcommon.Map, _ ptrace.Span) {
		a.PutStr("jaeger.sampler.type", "ratelimiting")
		a.PutInt("jaeger.sampler.param", 7)
	})
	f("number in a string", "t{cart GET / lowerbound 0.001}", func(a pcommon.Map, _ ptrace.Span) {
		a.PutStr("sampler.type", "lowerbound")
		a.PutStr("sampler.param", "0.001")
	})
	f("threshold", "t{cart GET / probabilistic 0.25}", func(_ pcommon.Map, s ptrace.Span) {
		s.TraceState().FromRaw("a=b, ot=rv:1;th:c")
		s.SetTraceID(pcommon.TraceID{9: 0xc0})
	})
	f("threshold that rejects the trace", "", func(_ pcommon.Map, s ptrace.Span) {
		s.TraceState().FromRaw("ot=th:c")
		s.SetTraceID(pcommon.TraceID{9: 0xbf})
	})
	f("threshold and attributes", "t{cart GET / const 1}", func(a pcommon.Map, s ptrace.Span) {
		s.TraceState().FromRaw("ot=th:c")
		a.PutStr("sampler.type", "const")
		a.PutInt("sampler.param", 1)
	})
	f("no sampler", "", func(pcommon.Map, ptrace.Span) {})
	f("unknown sampler", "", func(a pcommon.Map, _ ptrace.Span) {
		a.PutStr("sampler.type", "remote")
		a.PutDouble("sampler.param", 0.5)
	})
	f("no parameter", "", func(a pcommon.Map, _ ptrace.Span) { a.PutStr("sampler.type", "probabilistic") })
	for _, text := range []string{"", "x", "NaN", "1e999", "0.00000000000000000000000000000000001"} {
		f("not a number: "+text, "", func(a pcommon.Map, _ ptrace.Span) {
			a.PutStr("sampler.type", "probabilistic")
			a.PutStr("sampler.param", text)
		})
	}
	for _, state := range []string{"ot=", "ot=th:", "ot=th:g", "ot=th:000000000000000", "xot=th:8", "ot=rv:8,ot=th:8"} {
		f("invalid threshold: "+state, "", func(_ pcommon.Map, s ptrace.Span) { s.TraceState().FromRaw(state) })
	}
	sampled := func(a pcommon.Map) {
		a.PutStr("sampler.type", "probabilistic")
		a.PutDouble("sampler.param", 0.5)
	}
	f("child span", "", func(a pcommon.Map, s ptrace.Span) {
		sampled(a)
		s.SetParentSpanID(pcommon.SpanID{1})
	})
	f("no operation", "", func(a pcommon.Map, s ptrace.Span) {
		sampled(a)
		s.SetName("")
	})
	if l, _ := consume(t, "", func(s ptrace.Span) { sampled(s.Attributes()) }, 1); len(l.seen) != 0 {
		t.Errorf("without a service: %v", l.seen)
	}
}

// Many roots are reported in parts, each root once. Roots of refused batches are reported, too.
func TestManyRoots(t *testing.T) {
	each := func(s ptrace.Span) {
		s.Attributes().PutStr("sampler.type", "probabilistic")
		s.Attributes().PutDouble("sampler.param", 0.5)
	}
	l, b := consume(t, "cart", each, 3*maxRoots+1)
	if len(l.seen) != 3*maxRoots+1 || slices.ContainsFunc(l.seen, func(s string) bool { return s != l.seen[0] }) {
		t.Errorf("%d roots observed", len(l.seen))
	}
	l.err = errors.New("full")
	if err := New(l, l).Consume(t.Context(), b); !errors.Is(err, l.err) || len(l.seen) != 2*(3*maxRoots+1) {
		t.Errorf("%v; %d roots observed", err, len(l.seen))
	}
}

func TestConfig(t *testing.T) {
	c := Config{}
	if err := c.Validate(); err == nil || err.Error() != "must name the extension with adaptive sampling, for example sampling: sampling" {
		t.Errorf("%v", err)
	}
}

// FuzzShare checks that every parsed share is a probability.
func FuzzShare(f *testing.F) {
	for _, s := range []string{"ot=th:8", "a=b,ot=rv:12;th:fd70a", "ot=th:ffffffffffffff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, state string) {
		passes := otlpdata.TraceID{9: 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		if _, p, ok := samplerOf(&otlpdata.Span{TraceState: state, TraceID: passes}); ok && !(p > 0 && p <= 1) {
			t.Errorf("%q: share %v", state, p)
		}
	})
}

// counter is an observer that only counts.
type counter struct{ n int }

func (c *counter) Observe(_ string, roots []sampling.Root) { c.n += len(roots) }

func BenchmarkConsume(b *testing.B) {
	const spans = 1000
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "cart")
	all := rs.ScopeSpans().AppendEmpty().Spans()
	for i := range spans {
		s := all.AppendEmpty()
		s.SetName("GET /")
		s.SetTraceID(pcommon.TraceID{1})
		s.SetSpanID(pcommon.SpanID{1})
		for j := range 8 {
			s.Attributes().PutStr(fmt.Sprint("key", j), "some value")
		}
		if i%10 > 0 {
			s.SetParentSpanID(pcommon.SpanID{1})
			continue
		}
		s.Attributes().PutStr("sampler.type", "probabilistic")
		s.Attributes().PutDouble("sampler.param", 0.5)
	}
	marshaler := ptrace.ProtoMarshaler{}
	text, err := marshaler.MarshalTraces(td)
	if err != nil {
		b.Fatal(err)
	}
	batch, err := otlpdata.FromOTLP(text, otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	p := New(&counter{}, &recorder{})
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Consume(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*spans), "ns/span")
}
