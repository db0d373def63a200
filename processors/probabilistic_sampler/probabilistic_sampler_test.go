package probabilisticsampler

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink is a consumer that records the last batch and returns err.
type sink struct {
	got   *otlpdata.Batch
	calls int
	err   error
}

func (s *sink) Consume(_ context.Context, b *otlpdata.Batch) error {
	s.got, s.calls = b, s.calls+1
	return s.err
}

func build(tb testing.TB, percentage float64, mode string, change ...func(*Config)) (*sampler, *sink) {
	tb.Helper()
	next := &sink{}
	c := defaults()
	c.Percentage, c.Mode = percentage, mode
	for _, f := range change {
		f(&c)
	}
	if err := c.Validate(); err != nil {
		tb.Fatal(err)
	}
	s, err := newSampler(pipeline.Settings{Budget: pipeline.NewBudget(64 << 20), Metrics: prometheus.NewRegistry()}, c, next)
	if err != nil {
		tb.Fatal(err)
	}
	return s, next
}

// Expected thresholds come from the specification and the OpenTelemetry Collector.
func TestThresholds(t *testing.T) {
	f := func(share float64, precision int, want string) {
		t.Helper()
		if got := string(thresholdOf(share, precision).Append(nil)); got != want {
			t.Errorf("%v with %d digits: %s, want %s", share, precision, got, want)
		}
	}
	f(1, 4, "0")
	f(0.5, 4, "8")
	f(0.25, 4, "c")
	f(0.1, 4, "e666")
	f(0.1, 14, "e6666666666666")
	f(0.01, 4, "fd70a")
	f(1./3, 3, "aab")
	f(0x1p-56, 4, "ffffffffffffff")
	f(1e-30, 4, "ffffffffffffff")
	f(1-0x1p-50, 1, "0000000000004")
	f(0.9999, 4, "00068dc")
	if thresholdOf(0, 4) != otlpdata.RejectAll {
		t.Error("share 0 is not RejectAll")
	}
}

// sampled returns the tracestates of the sampled spans of b by name.
func sampled(t *testing.T, s *sampler, next *sink, b *otlpdata.Batch) map[string]string {
	t.Helper()
	next.got = nil
	if err := s.Consume(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	if next.got == nil {
		return out
	}
	td, err := next.got.Traces()
	if err != nil {
		t.Fatal(err)
	}
	for span := range spansOf(td) {
		out[span.Name()] = span.TraceState().AsRaw()
	}
	return out
}

func spansOf(td ptrace.Traces) func(yield func(ptrace.Span) bool) {
	return func(yield func(ptrace.Span) bool) {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					if !yield(span) {
						return
					}
				}
			}
		}
	}
}

// oneSpan returns a batch with one span. randomness is in the last 56 bits of its trace id.
func oneSpan(randomness uint64, tracestate string) *otlpdata.Batch {
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	id := pcommon.TraceID{1, 2, 3}
	binary.BigEndian.PutUint64(id[8:], 0xab<<56|randomness)
	span.SetTraceID(id)
	span.SetName("span")
	span.TraceState().FromRaw(tracestate)
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

func TestDecisions(t *testing.T) {
	const dropped = "-"
	f := func(percentage float64, mode string, randomness uint64, before, want string) {
		t.Helper()
		s, next := build(t, percentage, mode)
		got, kept := sampled(t, s, next, oneSpan(randomness, before))["span"]
		if !kept {
			got = dropped
		}
		if got != want {
			t.Errorf("%v %% %s of %x with %q: %q, want %q", percentage, mode, randomness, before, got, want)
		}
		if k, d := testutil.ToFloat64(s.kept), testutil.ToFloat64(s.dropped); k+d != 1 || (k == 1) != kept {
			t.Errorf("counted %v kept and %v dropped", k, d)
		}
	}
	const half, most, all = 1 << 55, 1<<56 - 1, 0
	f(50, modeEqualizing, half, "", "ot=th:8")
	f(50, modeEqualizing, half-1, "", dropped)
	f(0, modeEqualizing, most, "", dropped)
	f(100, modeEqualizing, all, "a=b", "a=b")
	f(50, modeEqualizing, most, "a=1, ot=x:7;rv:8000000000000f;y:2 ,b=2", "ot=th:8;x:7;rv:8000000000000f;y:2,a=1,b=2")
	f(50, modeEqualizing, all, "ot=rv:80000000000000", "ot=th:8;rv:80000000000000")
	f(50, modeEqualizing, most, "ot=rv:7fffffffffffff", dropped)
	// Spans already sampled at a lower percentage pass unchanged; others get the threshold.
	f(50, modeEqualizing, most, "ot=th:c", "ot=th:c")
	f(50, modeEqualizing, most, "a=1,ot=th:80", "a=1,ot=th:80")
	f(50, modeEqualizing, most, "ot=th:4", "ot=th:8")
	f(50, modeEqualizing, half-1, "ot=th:4", dropped)
	// Half of a half is a quarter.
	f(50, modeProportional, most, "ot=th:8", "ot=th:c")
	f(50, modeProportional, 0xbfffffffffffff, "ot=th:8", dropped)
	f(50, modeProportional, half, "", "ot=th:8")
	// Thresholds that are inconsistent with the trace id or invalid are ignored.
	f(50, modeEqualizing, half, "ot=th:c", "ot=th:8")
	for _, invalid := range []string{"ot=th:", "ot=th:C", "ot=th:000000000000000", "ot=th", "ot", "ot=", "=", ",,", "ot=rv:8"} {
		s, next := build(t, 50, modeEqualizing)
		if got := sampled(t, s, next, oneSpan(half, invalid)); !strings.HasPrefix(got["span"], "ot=th:8") {
			t.Errorf("%q became %q", invalid, got)
		}
	}
}

// The attribute sampling.priority overrides the decision of every mode.
func TestPriority(t *testing.T) {
	f := func(percentage float64, mode, before string, value any, want string) {
		t.Helper()
		s, next := build(t, percentage, mode)
		td, err := oneSpan(1<<55, before).Edit(func(td ptrace.Traces) error {
			for span := range spansOf(td) {
				return span.Attributes().PutEmpty(priorityKey).FromRaw(value)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got, kept := sampled(t, s, next, td)["span"]
		if !kept {
			got = "dropped"
		}
		if got != want {
			t.Errorf("%v %% %s, tracestate %q, priority %v: %q, want %q", percentage, mode, before, value, got, want)
		}
	}
	for _, mode := range []string{modeEqualizing, modeProportional} {
		f(0, mode, "", 1, "ot=th:0")
		f(10, mode, "a=b", 0.5, "ot=th:0,a=b")
		f(10, mode, "ot=th:4", "2", "ot=th:4") // cannot be sampled more than before
		f(100, mode, "", 0, "dropped")
		f(100, mode, "ot=th:4", 0.0, "dropped")
		f(100, mode, "", "0", "dropped")
		f(100, mode, "", -1, "")
		f(10, mode, "", -1, "dropped")
		f(50, mode, "", "high", "ot=th:8")
	}
	f(100, modeHashSeed, "", 0, "dropped")
	f(0, modeHashSeed, "ot=th:4", 1, "ot=th:4")
}

// The mode is hash_seed if only a seed is configured.
func TestDefaultMode(t *testing.T) {
	c := defaults()
	if c.mode() != modeEqualizing {
		t.Error(c.mode())
	}
	if c.HashSeed = 22; c.mode() != modeHashSeed {
		t.Error(c.mode())
	}
}

// randomTraces returns n traces with the same resource. Each has two spans in different scopes.
func randomTraces(r *rand.Rand, n int) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "cart")
	rs.SetSchemaUrl("schema")
	roots, children := rs.ScopeSpans().AppendEmpty(), rs.ScopeSpans().AppendEmpty()
	roots.Scope().SetName("scope")
	for i := range n {
		var id pcommon.TraceID
		binary.BigEndian.PutUint64(id[:], r.Uint64())
		binary.BigEndian.PutUint64(id[8:], r.Uint64())
		for which, scope := range []ptrace.ScopeSpans{roots, children} {
			span := scope.Spans().AppendEmpty()
			span.SetTraceID(id)
			span.SetSpanID(pcommon.SpanID{byte(which), 1})
			span.SetName(fmt.Sprint(i, " ", which))
			span.Attributes().PutInt("i", int64(i))
		}
	}
	return td
}

// The share matches the percentage, the decision is the same for all spans of a trace, and a trace
// sampled at a percentage is sampled at all higher ones.
func TestShares(t *testing.T) {
	const traces = 20_000
	b := otlpdata.FromTraces(randomTraces(rand.New(rand.NewPCG(1, 2)), traces), otlpdata.Meta{Tenant: "acme"})
	var smaller map[string]string
	for _, percentage := range []float64{1, 10, 33.3, 50, 90} {
		s, next := build(t, percentage, modeEqualizing)
		got := sampled(t, s, next, b)
		p := percentage / 100
		if n := float64(len(got)) / 2; math.Abs(n-traces*p) > 5*math.Sqrt(traces*p*(1-p)) {
			t.Errorf("%v %%: %v traces of %d", percentage, n, traces)
		}
		for name := range got {
			if _, other := got[strings.TrimRight(name, "01")+"0"]; !other {
				t.Fatalf("%v %%: incomplete trace", percentage)
			}
		}
		for name := range smaller {
			if _, still := got[name]; !still {
				t.Fatalf("%v %%: %s is sampled only at a lower percentage", percentage, name)
			}
		}
		if smaller = got; next.got.Meta() != b.Meta() {
			t.Errorf("%+v", next.got.Meta())
		}
	}
}

// Only the tracestate of sampled spans changes. Empty batches are not passed on.
func TestOtherFieldsAreUnchanged(t *testing.T) {
	td := randomTraces(rand.New(rand.NewPCG(3, 4)), 50)
	td.ResourceSpans().AppendEmpty().Resource().Attributes().PutStr("service.name", "empty")
	half, err := otlpdata.Concat(otlpdata.FromTraces(td, otlpdata.Meta{}),
		otlpdata.FromTraces(randomTraces(rand.New(rand.NewPCG(5, 6)), 50), otlpdata.Meta{}))
	if err != nil {
		t.Fatal(err)
	}
	s, next := build(t, 30, modeEqualizing)
	checkEdit(t, s, next, half)
	if n := next.got.Len(); n == 0 || n == half.Len() {
		t.Errorf("%d of %d spans sampled", n, half.Len())
	}
	s, next = build(t, 0, modeEqualizing)
	if err := s.Consume(t.Context(), half); err != nil || next.calls != 0 {
		t.Errorf("%v, %d calls", err, next.calls)
	}
}

// checkEdit compares the result with the same decisions applied to objects.
func checkEdit(t *testing.T, s *sampler, next *sink, b *otlpdata.Batch) {
	t.Helper()
	next.got = nil
	if err := s.Consume(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	want, err := b.Edit(func(td ptrace.Traces) error {
		td.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
			rs.ScopeSpans().RemoveIf(func(ss ptrace.ScopeSpans) bool {
				ss.Spans().RemoveIf(func(span ptrace.Span) bool {
					state, changed, sampled := s.method.decide(nil, otlpdata.TraceID(span.TraceID()), []byte(span.TraceState().AsRaw()),
						priorityOfObject(span))
					if changed {
						span.TraceState().FromRaw(string(state))
					}
					return !sampled
				})
				return ss.Spans().Len() == 0
			})
			return rs.ScopeSpans().Len() == 0
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if next.got == nil {
		if want.Len() != 0 {
			t.Fatalf("no spans sampled, want %d", want.Len())
		}
		return
	}
	if got, want := marshaled(t, next.got), marshaled(t, want); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// priorityOfObject is priorityOf for an object.
func priorityOfObject(span ptrace.Span) priority {
	number := math.NaN()
	if v, ok := span.Attributes().Get(priorityKey); ok {
		switch v.Type() {
		case pcommon.ValueTypeInt:
			number = float64(v.Int())
		case pcommon.ValueTypeDouble:
			number = v.Double()
		case pcommon.ValueTypeStr:
			if n, err := strconv.ParseFloat(v.Str(), 64); err == nil {
				number = n
			}
		}
	}
	switch {
	case number == 0:
		return priorityDrop
	case number > 0:
		return priorityKeep
	}
	return priorityNone
}

func marshaled(t *testing.T, b *otlpdata.Batch) string {
	t.Helper()
	td, err := b.Traces()
	if err != nil {
		t.Fatal(err)
	}
	out, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Errors of the next component are returned, and nothing is counted, because the caller sends the
// batch again.
func TestErrors(t *testing.T) {
	s, next := build(t, 50, modeEqualizing)
	next.err = errors.New("full")
	if err := s.Consume(t.Context(), oneSpan(1<<55, "")); !errors.Is(err, next.err) {
		t.Errorf("%v", err)
	}
	if n := testutil.ToFloat64(s.kept) + testutil.ToFloat64(s.dropped); n != 0 {
		t.Errorf("%v spans counted", n)
	}
	s.budget = pipeline.NewBudget(10)
	var limit *otlpdata.LimitError
	if err := s.Consume(t.Context(), oneSpan(1<<55, "")); !errors.As(err, &limit) || !limit.TooLarge {
		t.Errorf("%v", err)
	}
}

func TestBadConfig(t *testing.T) {
	c := Config{Percentage: math.NaN(), Mode: "hash"}
	const want = "must be from 0 to 100, not NaN\nunknown mode \"hash\"; use one of: equalizing, proportional, hash_seed\n" +
		"must be from 1 to 14, not 0"
	if err := c.Validate(); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// FuzzConsume compares the result for arbitrary requests with decisions applied to objects.
func FuzzConsume(f *testing.F) {
	m := &ptrace.ProtoMarshaler{}
	for _, td := range []ptrace.Traces{randomTraces(rand.New(rand.NewPCG(7, 8)), 4), ptrace.NewTraces()} {
		b, err := m.MarshalTraces(td)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 50.0)
	}
	old, _ := hex.DecodeString("0a0fc23e0c120a0a080102030405060708") // scope spans in field 1000
	f.Add(old, 100.0)
	f.Add([]byte("\n\x00"), 10.0) // a resource without spans
	prioritized := randomTraces(rand.New(rand.NewPCG(9, 10)), 3)
	for span := range spansOf(prioritized) {
		span.Attributes().PutDouble(priorityKey, 0.5)
		span.TraceState().FromRaw("a=b")
	}
	b, err := m.MarshalTraces(prioritized)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, 100.0)
	// A tag and a priority of ten bytes each.
	long := append(binary.AppendUvarint(nil, 1<<63|3<<3)[:9], 0)
	long = append(append(long, 0x81), 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0)
	long = protoenc.AppendBytes(protoenc.AppendString(nil, 1, priorityKey), 2, long)
	long = protoenc.AppendBytes(nil, 2, protoenc.AppendBytes(nil, 9, long))
	f.Add(protoenc.AppendBytes(nil, 1, protoenc.AppendBytes(nil, 2, long)), 0.0)
	f.Fuzz(func(t *testing.T, body []byte, percentage float64) {
		if !(percentage >= 0 && percentage <= 100) {
			return
		}
		b, err := otlpdata.FromOTLP(body, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil {
			return
		}
		chunks, err := b.Chunks()
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []string{modeEqualizing, modeProportional, modeHashSeed} {
			s, next := build(t, percentage, mode)
			if b.Len() > 0 && !s.passesAll(chunks) { // otherwise the batch is passed on unchanged
				checkEdit(t, s, next, b)
			}
		}
	})
}

func BenchmarkConsume(b *testing.B) {
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(randomTraces(rand.New(rand.NewPCG(1, 2)), 500))
	if err != nil {
		b.Fatal(err)
	}
	batch, err := otlpdata.FromOTLP(body, otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	s, _ := build(b, 10, modeEqualizing)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Consume(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/span")
}
