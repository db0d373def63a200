package queryfilter

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/internal/wire/expression_v1"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// spans returns the trace of the tests.
func spans(t testing.TB) *otlpdata.Batch {
	t.Helper()
	td := ptrace.NewTraces()
	start := time.Unix(1_700_000_000, 0)
	add := func(service string, id byte, d time.Duration) (pcommon.Resource, ptrace.ScopeSpans, ptrace.Span) {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", service)
		ss := rs.ScopeSpans().AppendEmpty()
		s := ss.Spans().AppendEmpty()
		s.SetTraceID(pcommon.TraceID{0xab, 15: 1})
		s.SetSpanID(pcommon.SpanID{7: id})
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(d)))
		return rs.Resource(), ss, s
	}
	event := func(s ptrace.Span, name string, after time.Duration) pcommon.Map {
		e := s.Events().AppendEmpty()
		e.SetName(name)
		e.SetTimestamp(s.StartTimestamp() + pcommon.Timestamp(after))
		return e.Attributes()
	}

	_, _, s := add("web", 1, 100*time.Millisecond)
	s.SetName("GET /")
	s.SetKind(ptrace.SpanKindServer)
	s.Status().SetCode(ptrace.StatusCodeError)
	s.Status().SetMessage("boom")
	s.Attributes().PutInt("http.status", 500)
	s.Attributes().PutStr("method", "GET")
	s.Attributes().PutBool("retry", true)
	s.Attributes().PutDouble("ratio", 0.5)
	s.Attributes().PutStr("region", "us")
	event(s, "exception", 60*time.Millisecond).PutStr("type", "io")
	event(s, "log", 10*time.Millisecond)
	link := s.Links().AppendEmpty()
	link.SetTraceID(pcommon.TraceID{0xcd})
	link.SetSpanID(pcommon.SpanID{9})
	link.Attributes().PutStr("why", "batch")

	r, ss, s := add("api", 2, 20*time.Millisecond)
	r.Attributes().PutStr("region", "eu")
	ss.Scope().SetName("lib")
	ss.Scope().SetVersion("v1")
	ss.Scope().Attributes().PutStr("method", "scope")
	s.SetParentSpanID(pcommon.SpanID{7: 1})
	s.SetName("SELECT")
	s.SetKind(ptrace.SpanKindClient)
	s.Status().SetCode(ptrace.StatusCodeOk)
	s.Attributes().PutStr("http.status", "500")
	s.Attributes().PutStr("retry", "true")

	_, _, s = add("api", 3, 5*time.Millisecond)
	s.SetName("tick")
	s.Attributes().PutInt("big", 1<<53+1)
	s.Attributes().PutInt("http.status", 200)
	s.Attributes().PutInt("limit", 100)
	event(s, "log", 0).PutStr("type", "net")
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

// found returns the last digits of the ids of the spans that meet a condition, or none.
func found(t testing.TB, b *otlpdata.Batch, where tracestore.Expr) string {
	t.Helper()
	var ids []string
	err := storequery.VisitSelected(t.Context(), storequery.Select{Where: where}, otlpdata.TraceID{0xab, 15: 1}, true,
		func(s tracestore.Span) error {
			ids = append(ids, fmt.Sprint(s.SpanID[7]))
			return nil
		}, b)
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) == 0 {
		return "none"
	}
	return strings.Join(ids, " ")
}

// TestFilters compares the answers to the filters in a file: spans or an error.
func TestFilters(t *testing.T) {
	const file = "testdata/filters.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b := spans(t)
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line)
		if !strings.HasPrefix(line, "{") {
			continue
		}
		where, err := ParseJSON(strings.TrimSpace(line))
		if err != nil {
			fmt.Fprintf(&out, "  error: %v\n", err)
		} else {
			fmt.Fprintf(&out, "  %s\n", found(t, b, where))
		}
	}
	golden.Check(t, file, out.String())
}

func attr(key, level string) *expression_v1.Expression {
	return &expression_v1.Expression{Term: &expression_v1.Expression_Attr{
		Attr: &expression_v1.AttributeReference{Key: key, Level: level}}}
}

func scalar(value string) *expression_v1.Expression {
	return &expression_v1.Expression{Term: &expression_v1.Expression_Scalar{Scalar: &expression_v1.Scalar{Value: value}}}
}

func nest(c *expression_v1.Call) *expression_v1.Expression {
	return &expression_v1.Expression{Term: &expression_v1.Expression_Call{Call: c}}
}

func equal(key string) *expression_v1.Call {
	return &expression_v1.Call{Op: opEq, Args: []*expression_v1.Expression{attr(key, levelSpan), scalar("v")}}
}

// TestLimits checks that each limit is inclusive.
func TestLimits(t *testing.T) {
	deep := func(n int) *expression_v1.Call {
		c := equal("k")
		for range n - 1 {
			c = &expression_v1.Call{Op: opNot, Args: []*expression_v1.Expression{nest(c)}}
		}
		return c
	}
	wide := func(n int) *expression_v1.Call {
		c := &expression_v1.Call{Op: opOr}
		for range n {
			c.Args = append(c.Args, nest(equal("k")))
		}
		return c
	}
	list := func(n int) *expression_v1.Call {
		values := make([]string, n)
		return &expression_v1.Call{Op: opIn, Args: []*expression_v1.Expression{attr("k", ""),
			{Term: &expression_v1.Expression_List{List: &expression_v1.List{Values: values, Type: typeString}}}}}
	}
	long := func(n int) *expression_v1.Call { return equal(strings.Repeat("k", n-len("v"))) }
	pattern := func(n int) *expression_v1.Call {
		return &expression_v1.Call{Op: opRegex, Args: []*expression_v1.Expression{attr("k", ""), scalar(strings.Repeat("x", n))}}
	}
	for _, c := range []struct {
		filter  func(int) *expression_v1.Call
		limit   int
		problem string
	}{
		{deep, MaxDepth, "nests calls more than 20 deep"},
		{wide, MaxConditions, "more than 256 comparisons"},
		{list, MaxConditions / 2, "more than 256 comparisons"},
		{long, MaxText, "more than 16384 bytes"},
		{pattern, traceql.MaxPattern, "has 1025 bytes; the maximum is 1024"},
	} {
		if _, err := Parse(c.filter(c.limit)); err != nil {
			t.Errorf("%s: at the limit: %v", c.problem, err)
		}
		if _, err := Parse(c.filter(c.limit + 1)); err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: above the limit: %v", c.problem, err)
		}
	}
	steps := &expression_v1.Call{Op: opRegex, Args: []*expression_v1.Expression{attr("k", ""), scalar("(abcdefgh){200}")}}
	if _, err := Parse(steps); err == nil || !strings.Contains(err.Error(), "more than 1024 steps") {
		t.Errorf("steps: %v", err)
	}
}

// FuzzParse decodes filters. A valid one has the same meaning in both forms, and nothing panics.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/filters.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "{") {
			f.Add(strings.TrimSpace(line))
		}
	}
	b := spans(f)
	f.Fuzz(func(t *testing.T, text string) {
		where, err := ParseJSON(text)
		if err != nil {
			if len(err.Error()) > len(text)*4+1000 {
				t.Errorf("error of %d bytes for %d bytes", len(err.Error()), len(text))
			}
			return
		}
		call := &expression_v1.Call{}
		if err := protojson.Unmarshal([]byte(text), call); err != nil {
			t.Fatal(err)
		}
		again, err := Parse(call)
		if err != nil {
			t.Fatal(err)
		}
		if one, other := found(t, b, where), found(t, b, again); one != other {
			t.Errorf("%s finds %s and %s", text, one, other)
		}
	})
}
