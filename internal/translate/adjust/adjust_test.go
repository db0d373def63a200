package adjust_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leg is a span of trace 9.
type leg struct {
	host       string
	id, parent byte
	start, end uint64 // milliseconds
}

func batch(legs ...leg) *otlpdata.Batch {
	td := ptrace.NewTraces()
	for _, l := range legs {
		rs := td.ResourceSpans().AppendEmpty()
		if l.host != "" {
			rs.Resource().Attributes().PutStr("host.name", l.host)
		}
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID(pcommon.TraceID{15: 9})
		s.SetSpanID(pcommon.SpanID{7: l.id})
		s.SetParentSpanID(pcommon.SpanID{7: l.parent})
		s.SetStartTimestamp(pcommon.Timestamp(l.start * 1e6))
		s.SetEndTimestamp(pcommon.Timestamp(l.end * 1e6))
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

// seen is a visitor that records a line for each span: id, start and end in milliseconds, warnings.
type seen struct {
	lines []string
	spans []otlpdata.Span
	stop  error
}

func (s *seen) Resource(*otlpdata.Resource) error { return nil }
func (s *seen) Scope(*otlpdata.Scope) error       { return nil }
func (s *seen) Span(sp *otlpdata.Span) error {
	line := fmt.Sprint(sp.SpanID[7], " ", sp.Start/1e6, "-", sp.End/1e6)
	if v, ok := otlpdata.Get(sp.Attributes, adjust.WarningsKey); ok {
		for w := range v.Elements() {
			line += "; " + w.Str()
		}
	}
	s.lines = append(s.lines, line)
	s.spans = append(s.spans, *sp)
	return s.stop
}

func walk(t testing.TB, opt adjust.Options, batches ...*otlpdata.Batch) *seen {
	t.Helper()
	var s seen
	if err := adjust.Walk(opt, &s, batches...); err != nil {
		t.Fatal(err)
	}
	return &s
}

func TestClockSkew(t *testing.T) {
	f := func(most time.Duration, want string, legs ...leg) {
		t.Helper()
		if got := strings.Join(walk(t, adjust.Options{MaxClockSkew: most}, batch(legs...)).lines, "\n"); got != want {
			t.Errorf("%v:\ngot  %s\nwant %s", legs, got, want)
		}
	}
	const moved = "; This span's timestamps were adjusted by "
	root := leg{"a", 1, 0, 100, 200}
	f(time.Hour, "1 100-200\n2 110-120", root, leg{"b", 2, 1, 110, 120})                // within
	f(time.Hour, "1 100-200\n2 50-60", root, leg{"a", 2, 1, 50, 60})                    // the same clock
	f(time.Hour, "1 100-200\n2 145-155"+moved+"95ms", root, leg{"b", 2, 1, 50, 60})     // too early
	f(time.Hour, "1 100-200\n2 145-155"+moved+"-155ms", root, leg{"b", 2, 1, 300, 310}) // too late
	f(time.Hour, "1 100-200\n2 130-170"+moved+"-40ms", root, leg{"b", 2, 1, 170, 210})  // ends too late
	f(time.Hour, "1 100-200\n2 100-300"+moved+"50ms", root, leg{"b", 2, 1, 50, 250})    // longer, too early
	f(time.Hour, "1 100-200\n2 150-350", root, leg{"b", 2, 1, 150, 350})                // longer, and so asynchronous
	// Descendants move along, in any order of spans; spans on other or unknown hosts are compared
	// again.
	f(time.Hour, "3 146-150"+moved+"95ms\n2 145-155"+moved+"95ms\n1 100-200",
		leg{"b", 3, 2, 51, 55}, leg{"b", 2, 1, 50, 60}, root)
	f(time.Hour, "1 100-200\n2 145-155"+moved+"95ms\n3 148-152"+moved+"97ms", root, leg{"b", 2, 1, 50, 60}, leg{"", 3, 2, 51, 55})
	// Corrections that are not applied are described in warnings.
	f(0, "1 100-200\n2 50-60; clock skew adjustment disabled; not applying calculated delta of 95ms", root, leg{"b", 2, 1, 50, 60})
	f(94*time.Millisecond, "1 100-200\n2 50-60; max clock skew adjustment delta of 94ms exceeded; not applying calculated delta of 95ms",
		root, leg{"b", 2, 1, 50, 60})
	f(time.Hour, "1 100-200\n1 1-2; duplicate span IDs; skipping clock skew adjustment", root, leg{"b", 1, 0, 1, 2})
	// A span with a missing parent is not moved, and its descendants are compared with it.
	f(time.Hour, "2 2-3; parent span ID=0000000000000007 is not in the trace; skipping clock skew adjustment\n3 2-7"+moved+
		"1ms\n4 3-4"+moved+"1ms",
		leg{"b", 2, 7, 2, 3}, leg{"c", 3, 2, 1, 6}, leg{"c", 4, 3, 2, 3})
	f(time.Hour, "2 1-2\n3 0-5", leg{"b", 2, 3, 1, 2}, leg{"c", 3, 2, 0, 5}) // parents of each other
	f(time.Hour, "2 1-2", leg{"b", 2, 2, 1, 2})
}

// A span without a name gets one, also in raw and truncated traces.
func TestEmptyName(t *testing.T) {
	for _, opt := range []adjust.Options{{}, {Raw: true}, {MaxSpans: 1}} {
		for _, sp := range walk(t, opt, batch(leg{"a", 1, 0, 1, 2}, leg{"a", 2, 1, 1, 2})).spans {
			if sp.Name != otlpdata.EmptySpanName || sp.Raw != nil {
				t.Errorf("%+v: name %q, %d raw bytes", opt, sp.Name, len(sp.Raw))
			}
		}
	}
}

// A span without a start time is not moved, and neither are its children on other hosts.
func TestClockSkewWithoutStart(t *testing.T) {
	const none = "; span has no start time; skipping clock skew adjustment"
	for _, limit := range []time.Duration{0, time.Hour, math.MaxInt64} {
		for want, legs := range map[string][]leg{
			"1 100-200\n2 0-5" + none + "\n3 900-905\n4 0-900" + none: {
				{"a", 1, 0, 100, 200}, {"b", 2, 1, 0, 5}, {"c", 3, 2, 900, 905}, {"a", 4, 1, 0, 900}},
			"1 0-7\n2 300-400\n3 310-320": {{"a", 1, 0, 0, 7}, {"b", 2, 1, 300, 400}, {"b", 3, 2, 310, 320}},
			"1 100-200\n2 0-5" + none:     {{"a", 1, 0, 100, 200}, {"", 2, 1, 0, 5}},
		} {
			if got := strings.Join(walk(t, adjust.Options{MaxClockSkew: limit}, batch(legs...)).lines, "\n"); got != want {
				t.Errorf("%s:\ngot  %s\nwant %s", limit, got, want)
			}
		}
	}
}

// Times at the ends of the range do not wrap around.
func TestClockSkewAtTheEnds(t *testing.T) {
	b := batch(leg{"a", 1, 0, 0, 0}, leg{"b", 2, 1, 1, 1})
	b, err := b.Edit(func(td ptrace.Traces) error {
		td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetStartTimestamp(math.MaxUint64 - 1)
		td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetEndTimestamp(math.MaxUint64)
		e := td.ResourceSpans().At(1).ScopeSpans().At(0).Spans().At(0).Events().AppendEmpty()
		e.SetTimestamp(math.MaxUint64 - 5)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := walk(t, adjust.Options{MaxClockSkew: math.MaxInt64}, b)
	if got := s.spans[1]; got.Start != 1e6+math.MaxInt64 || len(s.lines) != 2 {
		t.Errorf("starts at %d: %v", got.Start, s.lines)
	}
}

func TestHosts(t *testing.T) {
	same := func(want bool, a, b func(pcommon.Map)) {
		t.Helper()
		legs := batch(leg{"", 1, 0, 100, 200}, leg{"", 2, 1, 50, 60})
		legs, err := legs.Edit(func(td ptrace.Traces) error {
			a(td.ResourceSpans().At(0).Resource().Attributes())
			b(td.ResourceSpans().At(1).Resource().Attributes())
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := walk(t, adjust.Options{}, legs).lines[1] == "2 50-60"; got != want {
			t.Errorf("the same host: %t", got)
		}
	}
	put := func(key, value string) func(pcommon.Map) { return func(m pcommon.Map) { m.PutStr(key, value) } }
	list := func(values ...any) func(pcommon.Map) {
		return func(m pcommon.Map) {
			if err := m.PutEmptySlice("host.ip").FromRaw(values); err != nil {
				t.Fatal(err)
			}
		}
	}
	same(false, func(pcommon.Map) {}, func(pcommon.Map) {}) // unknown hosts
	same(true, put("host.id", "x"), put("host.id", "x"))
	same(false, put("host.id", "x"), put("host.id", "y"))
	same(true, put("host.name", "x"), put("host.name", "x"))
	same(true, list("1.2.3.4", "5.6.7.8"), list("1.2.3.4"))
	same(false, list(), list())
	same(true, put("ip", "1.2.3.4"), func(m pcommon.Map) { m.PutInt("ip", 1<<24|2<<16|3<<8|4) })
	same(true, put("ip", "1.2.3.4"), func(m pcommon.Map) { m.PutEmptyBytes("ip").FromRaw([]byte{1, 2, 3, 4}) })
	same(true, put("ip", "0102"), func(m pcommon.Map) { m.PutEmptyBytes("ip").FromRaw([]byte{1, 2}) })
}

// A request with all lists in reverse order is shown in sorted order.
func TestEverythingIsSorted(t *testing.T) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	ss := rs.ScopeSpans().AppendEmpty()
	s := ss.Spans().AppendEmpty()
	s.Events().AppendEmpty()
	for _, m := range []pcommon.Map{rs.Resource().Attributes(), ss.Scope().Attributes(), s.Attributes(),
		s.Events().AppendEmpty().Attributes()} {
		for _, k := range []string{"b", "a", "c"} {
			m.PutStr(k, "")
		}
	}
	var v order
	if err := adjust.Walk(adjust.Options{}, &v, otlpdata.FromTraces(td, otlpdata.Meta{})); err != nil {
		t.Fatal(err)
	}
	if want := []string{"abc", "abc", "abc", "", "abc"}; !reflect.DeepEqual(v.keys, want) {
		t.Errorf("keys %q, want %q", v.keys, want)
	}
}

type order struct{ keys []string }

func (o *order) add(kvs []otlpdata.KeyValue) {
	keys := ""
	for _, kv := range kvs {
		keys += kv.Key
	}
	o.keys = append(o.keys, keys)
}

func (o *order) Resource(r *otlpdata.Resource) error { o.add(r.Attributes); return nil }
func (o *order) Scope(s *otlpdata.Scope) error       { o.add(s.Attributes); return nil }
func (o *order) Span(s *otlpdata.Span) error {
	o.add(s.Attributes)
	for i := range s.Events {
		o.add(s.Events[i].Attributes)
	}
	return nil
}

func TestCut(t *testing.T) {
	a, b := batch(leg{"a", 1, 0, 5, 9}), batch(leg{"b", 2, 1, 1, 2}, leg{"b", 2, 1, 1, 2})
	f := func(opt adjust.Options, want ...string) {
		t.Helper()
		if got := walk(t, opt, a, b).lines; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: got %q, want %q", opt, got, want)
		}
		if cut := opt.MaxSpans == 1 || opt.MaxSpans == 2; opt.AsStored(a, b) != (cut || opt.Raw) {
			t.Errorf("%+v: as stored %t", opt, opt.AsStored(a, b))
		}
	}
	const skew = "; clock skew adjustment disabled; not applying calculated delta of 5.5ms"
	f(adjust.Options{MaxSpans: 3}, "1 5-9", "2 1-2"+skew)
	f(adjust.Options{MaxSpans: 3, Raw: true}, "1 5-9", "2 1-2", "2 1-2")
	f(adjust.Options{MaxSpans: 2}, "1 5-9; trace has more than 2 spans, showing first 2 spans only", "2 1-2")
	f(adjust.Options{MaxSpans: 1, Raw: true}, "1 5-9; trace has more than 1 spans, showing first 1 spans only")
}

func TestErrorOfTheVisitor(t *testing.T) {
	enough := errors.New("enough")
	for _, opt := range []adjust.Options{{}, {Raw: true}, {MaxSpans: 1}} {
		s := seen{stop: enough}
		if err := adjust.Walk(opt, &s, batch(leg{"a", 1, 0, 1, 2}, leg{"a", 2, 0, 1, 2})); err != enough || len(s.lines) != 1 {
			t.Errorf("%+v: %v after %d spans", opt, err, len(s.lines))
		}
	}
}

// A long chain of calls does not cause deep recursion, and walks are deterministic even with reused
// memory.
func TestLongChain(t *testing.T) {
	td := ptrace.NewTraces()
	for i := range 20_000 {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("host.name", fmt.Sprint(i))
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetSpanID(pcommon.SpanID{5: byte(i >> 16), 6: byte(i >> 8), 7: byte(i)})
		if i > 1 {
			s.SetParentSpanID(pcommon.SpanID{5: byte((i - 1) >> 16), 6: byte((i - 1) >> 8), 7: byte(i - 1)})
		}
		s.SetStartTimestamp(pcommon.Timestamp(1+i%7) * 1e6)
		s.SetEndTimestamp(s.StartTimestamp() + 1e6)
	}
	b := otlpdata.FromTraces(td, otlpdata.Meta{})
	opt := adjust.Options{MaxClockSkew: time.Hour}
	first, again := walk(t, opt, b).lines, walk(t, opt, b).lines
	if !reflect.DeepEqual(first, again) || len(first) != 20_000 || !strings.HasPrefix(first[19_999], "31 2-3; This span's timestamps") {
		t.Errorf("%d lines, the last is %s", len(first), first[len(first)-1])
	}
}

func FuzzWalk(f *testing.F) {
	for _, b := range []*otlpdata.Batch{batch(leg{"a", 1, 0, 5, 9}, leg{"b", 2, 1, 1, 2}),
		batch(leg{"b", 2, 1, 1, 2}, leg{"b", 2, 1, 1, 2})} {
		encoded, err := b.Encoded()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded, false, 0, int64(time.Hour))
		f.Add(encoded, true, 1, int64(0))
	}
	f.Fuzz(func(t *testing.T, request []byte, raw bool, most int, skew int64) {
		b, err := otlpdata.FromOTLP(request, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil {
			return
		}
		opt := adjust.Options{Raw: raw, MaxSpans: max(most, 0), MaxClockSkew: time.Duration(max(skew, 0))}
		first, again := walk(t, opt, b).lines, walk(t, opt, b).lines
		if !reflect.DeepEqual(first, again) {
			t.Errorf("%q and %q", first, again)
		}
		if n := b.Len(); len(first) > n || opt.MaxSpans > 0 && len(first) > opt.MaxSpans ||
			opt.AsStored(b) && opt.MaxSpans == 0 && len(first) != n {
			t.Errorf("%d of %d spans with %+v", len(first), n, opt)
		}
	})
}
