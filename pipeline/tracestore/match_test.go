package tracestore

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// batchOf returns a batch with one resource, one scope and one span, which change fills in.
func batchOf(tb testing.TB, change func(rs ptrace.ResourceSpans, ss ptrace.ScopeSpans, s ptrace.Span)) *otlpdata.Batch {
	tb.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	ss := rs.ScopeSpans().AppendEmpty()
	change(rs, ss, ss.Spans().AppendEmpty())
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

// matches evaluates an expression on the one span of a batch.
func matches(tb testing.TB, b *otlpdata.Batch, e Expr) (ok bool) {
	tb.Helper()
	n := 0
	err := WalkSpans(b, func(s Span) error {
		n++
		ok = Match(e, s)
		return nil
	})
	if err != nil || n != 1 {
		tb.Fatalf("%d spans, error %v", n, err)
	}
	return ok
}

func richSpan(rs ptrace.ResourceSpans, ss ptrace.ScopeSpans, s ptrace.Span) {
	rs.Resource().Attributes().PutStr("service.name", "cart")
	rs.Resource().Attributes().PutStr("in.resource", "r")
	ss.Scope().SetName("lib")
	ss.Scope().SetVersion("1.2")
	ss.Scope().Attributes().PutStr("in.scope", "s")
	s.SetName("GET /")
	s.SetKind(ptrace.SpanKindServer)
	s.SetParentSpanID([8]byte{0xab, 7: 1})
	s.SetStartTimestamp(1000)
	s.SetEndTimestamp(3500)
	s.Status().SetCode(ptrace.StatusCodeError)
	s.Status().SetMessage("broken")
	a := s.Attributes()
	a.PutStr("text", "Hello")
	a.PutInt("int", 200)
	a.PutDouble("float", 2.5)
	a.PutDouble("nan", math.NaN())
	a.PutBool("bool", true)
	a.PutEmpty("empty")
	a.PutEmptyBytes("bytes").FromRaw([]byte{1, 2})
	list := a.PutEmptySlice("list")
	list.AppendEmpty().SetInt(1)
	list.AppendEmpty().SetEmptyMap().PutStr("k", "v")
	a.PutStr("place", "span")
	rs.Resource().Attributes().PutStr("place", "resource")
	for _, name := range []string{"first", "second"} {
		e := s.Events().AppendEmpty()
		e.SetName(name)
		e.Attributes().PutStr("place", name)
	}
	s.Links().AppendEmpty().Attributes().PutStr("place", "link")
}

func TestMatchConditions(t *testing.T) {
	b := batchOf(t, richSpan)
	f := func(want bool, p Place, key string, op Op, l Literal) {
		t.Helper()
		if got := matches(t, b, Cond{Field{Place: p, Key: key}, op, l}); got != want {
			t.Errorf("place %d %q op %d %+v: %t, want %t", p, key, op, l, got, want)
		}
	}
	// Places.
	f(true, SpanAttribute, "place", Eq, Text("span"))
	f(false, SpanAttribute, "place", Eq, Text("resource"))
	f(true, ResourceAttribute, "place", Eq, Text("resource"))
	f(true, ScopeAttribute, "in.scope", Eq, Text("s"))
	f(false, ScopeAttribute, "in.resource", Exists, Literal{})
	f(true, EventAttribute, "place", Eq, Text("second"))
	f(true, LinkAttribute, "place", Eq, Text("link"))
	for _, text := range []string{"span", "resource", "first", "second", "link"} {
		f(true, AnyAttribute, "place", Eq, Text(text))
	}
	f(false, AnyAttribute, "place", Eq, Text("nowhere"))
	f(true, Service, "", Eq, Text("cart"))
	f(true, Name, "", Eq, Text("GET /"))
	f(true, Kind, "", Eq, Text("server"))
	f(true, Status, "", Eq, Text("error"))
	f(true, StatusMessage, "", Eq, Text("broken"))
	f(true, ScopeName, "", Eq, Text("lib"))
	f(true, ScopeVersion, "", Eq, Text("1.2"))
	f(true, EventName, "", Eq, Text("second"))
	f(true, ParentID, "", Eq, Text("ab00000000000001"))
	f(true, Duration, "", Eq, Number(2500))
	f(false, Place(200), "", Exists, Literal{})

	// Text forms.
	f(true, SpanAttribute, "int", Eq, Text("200"))
	f(true, SpanAttribute, "float", Eq, Text("2.5"))
	f(true, SpanAttribute, "bool", Eq, Text("true"))
	f(true, SpanAttribute, "bytes", Eq, Text("AQI="))
	f(true, SpanAttribute, "list", Eq, Text(`[1,{"k":"v"}]`))
	f(true, SpanAttribute, "empty", Eq, Text(""))
	f(true, SpanAttribute, "empty", Exists, Literal{})
	f(true, SpanAttribute, "list", Like, Pattern(regexp.MustCompile(`"k"`)))
	f(true, SpanAttribute, "int", Like, Pattern(regexp.MustCompile("^2..$")))
	f(false, SpanAttribute, "text", Like, Pattern(regexp.MustCompile("^ello")))
	f(false, SpanAttribute, "text", Like, Literal{})

	// Number literals compare with numbers, text literals with strings.
	f(true, SpanAttribute, "int", Eq, Number(200))
	f(true, SpanAttribute, "int", Ge, Number(200))
	f(false, SpanAttribute, "int", Gt, Number(200))
	f(true, SpanAttribute, "int", Lt, Number(200.5))
	f(true, SpanAttribute, "float", Le, Number(2.5))
	f(true, Duration, "", Gt, Number(2499))
	f(false, SpanAttribute, "text", Gt, Number(0))
	f(false, SpanAttribute, "text", Ne, Number(0))
	f(false, SpanAttribute, "int", Gt, Text("1"))
	f(true, SpanAttribute, "int", Ne, Text("1"))
	f(true, SpanAttribute, "text", Ge, Text("Hello"))
	f(false, SpanAttribute, "text", Lt, Text("Hello"))
	f(false, SpanAttribute, "nan", Eq, Number(math.NaN()))
	f(true, SpanAttribute, "nan", Ne, Number(1))
	f(true, SpanAttribute, "nan", Eq, Text("NaN"))
	f(false, SpanAttribute, "int", Op(99), Number(200))

	// One matching value of several is enough; without a value no operator holds.
	f(true, AnyAttribute, "place", Ne, Text("span"))
	for op := Eq; op <= Exists; op++ {
		f(false, AnyAttribute, "missing", op, Literal{Regexp: regexp.MustCompile("")})
	}
}

func TestMatchCorrectsSpans(t *testing.T) {
	b := batchOf(t, func(_ ptrace.ResourceSpans, _ ptrace.ScopeSpans, s ptrace.Span) {
		s.SetStartTimestamp(pcommon.Timestamp(math.MaxUint64))
		s.SetKind(99)
		s.Status().SetCode(99)
	})
	for _, c := range []Cond{
		{Field{Place: Service}, Eq, Text(otlpdata.MissingServiceName)},
		{Field{Place: Name}, Eq, Text(otlpdata.EmptySpanName)},
		{Field{Place: Kind}, Eq, Text("")},
		{Field{Place: Status}, Eq, Text("unset")},
		{Field{Place: Duration}, Eq, Number(1)},
		{Field{Place: StatusMessage}, Exists, Literal{}},
	} {
		if !matches(t, b, c) {
			t.Errorf("%+v does not match", c)
		}
	}
	for _, p := range []Place{ParentID, EventName} {
		if matches(t, b, Cond{Field: Field{Place: p}, Op: Exists}) {
			t.Errorf("place %d has a value", p)
		}
	}
}

func TestMatchCombinations(t *testing.T) {
	b := batchOf(t, richSpan)
	yes := Cond{Field{Place: Service}, Eq, Text("cart")}
	no := Cond{Field{Place: Service}, Eq, Text("other")}
	f := func(want bool, e Expr) {
		t.Helper()
		if got := matches(t, b, e); got != want {
			t.Errorf("%v: %t, want %t", e, got, want)
		}
	}
	f(true, nil)
	f(true, And{})
	f(false, Or{})
	f(true, And{yes, nil})
	f(false, And{yes, no})
	f(true, Or{no, yes})
	f(false, Or{no, no})
	f(true, Not{no})
	f(false, Not{yes})
	f(false, Not{nil})
	f(true, Not{And{yes, Not{Or{yes, no}}}})
	f(true, Not{Cond{Field{Key: "missing"}, Eq, Text("")}})
}

// TestMatchLongText checks that a regular expression sees only the beginning of a long text, cut
// between characters.
func TestMatchLongText(t *testing.T) {
	for _, test := range []struct {
		text, pattern string
		want          bool
	}{
		{strings.Repeat("a", MaxLikeBytes-1) + "z", "^a*z$", true},
		{strings.Repeat("a", MaxLikeBytes) + "z", "z", false},
		{strings.Repeat("a", MaxLikeBytes-1) + "\u00fcz", "^a*$", true},
		{strings.Repeat("\xbf", MaxLikeBytes+9), "z", false},
	} {
		c := Cond{Op: Like, Value: Pattern(regexp.MustCompile(test.pattern))}
		if got := c.Holds(otlpdata.StringValue(test.text)); got != test.want {
			t.Errorf("%q on %d bytes: %v, want %v", test.pattern, len(test.text), got, test.want)
		}
	}
}
