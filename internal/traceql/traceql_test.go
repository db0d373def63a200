package traceql

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func cmp(place tracestore.Place, key string, op tracestore.Op, value tracestore.Literal) tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: place, Key: key}, Op: op, Value: value}
}

func selected(e tracestore.Expr) storequery.SpanSet { return storequery.Select{Where: e} }

// TestParse checks the sets that searches stand for.
func TestParse(t *testing.T) {
	str, num := tracestore.Text, tracestore.Number
	like := func(s string) tracestore.Literal {
		l := tracestore.Pattern(regexp.MustCompile("^(?s:" + s + ")$"))
		l.Kind = otlpdata.ValueString
		return l
	}
	var (
		a      = cmp(tracestore.SpanAttribute, "a", tracestore.Eq, num(1))
		b      = cmp(tracestore.SpanAttribute, "b", tracestore.Eq, num(2))
		c      = cmp(tracestore.SpanAttribute, "c", tracestore.Eq, num(3))
		failed = cmp(tracestore.Status, "", tracestore.Eq, str("error"))
		child  = cmp(tracestore.ParentID, "", tracestore.Exists, tracestore.Literal{})
		exists = cmp(tracestore.AnyAttribute, "x.y", tracestore.Exists, tracestore.Literal{})
		text   = cmp(tracestore.AnyAttribute, "x.y", tracestore.Exists, tracestore.Literal{Kind: otlpdata.ValueString})
		matchy = cmp(tracestore.AnyAttribute, "x.y", tracestore.Like, like("a.*"))
		sa, sb = selected(a), selected(b)
		sc     = selected(c)
	)
	for _, test := range []struct {
		text string
		want storequery.SpanSet
	}{
		{`{ service.name = "checkout" && duration > 1s && (http.response.status_code >= 500 || error) }`, selected(tracestore.And{
			cmp(tracestore.Service, "", tracestore.Eq, str("checkout")),
			cmp(tracestore.Duration, "", tracestore.Gt, num(1e9)),
			tracestore.Or{cmp(tracestore.AnyAttribute, "http.response.status_code", tracestore.Ge, num(500)), failed},
		})},
		{`{}`, selected(nil)},
		{`{true}`, selected(tracestore.And{})},
		{`{false}`, selected(tracestore.Or{})},
		{`{ true && span.a = 1 && true }`, selected(a)},
		{`{ span.a = 1 && (span.b = 2 && span.c = 3) }`, selected(tracestore.And{a, b, c})},
		{`{ span.a = 1 || span.b = 2 && span.c = 3 }`, selected(tracestore.And{tracestore.Or{a, b}, c})},
		{`{ span.a = 1 || (span.b = 2 && span.c = 3) }`, selected(tracestore.Or{a, tracestore.And{b, c}})},
		{`{ !(span.a = 1) }`, selected(tracestore.Not{Expr: a})},
		{`{ !!(span.a = 1) }`, selected(a)},
		{`{ 1 = span.a }`, sa},
		{`{ 500ms <= duration }`, selected(cmp(tracestore.Duration, "", tracestore.Ge, num(5e8)))},
		{`{ error }`, selected(failed)},
		{`{ status = error }`, selected(failed)},
		{`{ error = status }`, selected(failed)},
		{`{ error != false }`, selected(failed)},
		{`{ error = false }`, selected(tracestore.Not{Expr: failed})},
		{`{ !error }`, selected(tracestore.Not{Expr: failed})},
		{`{ root }`, selected(tracestore.Not{Expr: child})},
		{`{ !root }`, selected(child)},
		{`{ root = false }`, selected(child)},
		{`{ exists(x.y) }`, selected(exists)},
		{`{ x.y != nil }`, selected(exists)},
		{`{ nil = x.y }`, selected(tracestore.Not{Expr: exists})},
		{"{ x.y =~ `a.*` }", selected(matchy)},
		{`{ x.y !~ "a.*" }`, selected(tracestore.And{text, tracestore.Not{Expr: matchy}})},
		{"{ x.y =~ `a\\Q)|(` }", selected(cmp(tracestore.AnyAttribute, "x.y", tracestore.Like, like(`a\Q)|(\E`)))},
		{`{ x.y }`, selected(cmp(tracestore.AnyAttribute, "x.y", tracestore.Eq, tracestore.Bool(true)))},
		{`{ .x != false }`, selected(cmp(tracestore.AnyAttribute, "x", tracestore.Ne, tracestore.Bool(false)))},
		{`{ .x = "500" || .x = "true" }`, selected(tracestore.Or{cmp(tracestore.AnyAttribute, "x", tracestore.Eq, tracestore.String("500")),
			cmp(tracestore.AnyAttribute, "x", tracestore.Eq, tracestore.String("true"))})},
		{`{ span."a b".c = -1.5e3 }`, selected(cmp(tracestore.SpanAttribute, "a b.c", tracestore.Eq, num(-1500)))},
		{`{ event."" < "\u00e9\xff\n" }`, selected(cmp(tracestore.EventAttribute, "", tracestore.Lt, tracestore.String("é\xff\n")))},
		{`{ kind = unspecified }`, selected(cmp(tracestore.Kind, "", tracestore.Eq, str("")))},
		{`{ childCount > 3 }`, selected(cmp(tracestore.ChildCount, "", tracestore.Gt, num(3)))},
		{`{ server != kind }`, selected(cmp(tracestore.Kind, "", tracestore.Ne, str("server")))},
		{`{ duration >= 1d2h3m4.5s6ms7us8ns }`, selected(cmp(tracestore.Duration, "", tracestore.Ge, num(93784506007008)))},
		{`{span.a=1}>{span.b=2}>>{span.c=3}`, storequery.Relation{
			Left: storequery.Relation{Kind: storequery.Child, Left: sa, Right: sb}, Right: sc}},
		{`{span.a=1}||{span.b=2}&&{span.c=3}>{}`, storequery.And{Left: storequery.Or{Left: sa, Right: sb},
			Right: storequery.Relation{Kind: storequery.Child, Left: sc, Right: selected(nil)}}},
		{`{span.a=1}||({span.b=2}&&{span.c=3}>{})`, storequery.Or{
			Left: sa, Right: storequery.And{Left: sb, Right: storequery.Relation{Kind: storequery.Child, Left: sc, Right: selected(nil)}}}},
		{`({span.a=1}||{span.b=2})&&{span.c=3}`, storequery.And{Left: storequery.Or{Left: sa, Right: sb}, Right: sc}},
		{`{span.a=1}&&({span.b=2}&&{span.c=3})`, storequery.And{Left: sa, Right: storequery.And{Left: sb, Right: sc}}},
	} {
		q, err := Parse(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if !reflect.DeepEqual(q.Set, test.want) {
			t.Errorf("%s is parsed as %s (%#v)", test.text, Format(q.Set), q.Set)
		}
		checkFormat(t, q.Set)
	}
}

// TestFormatAnyType checks the text for a value of an attribute whose type is unknown.
func TestFormatAnyType(t *testing.T) {
	is := func(op tracestore.Op, text string) tracestore.Cond {
		return cmp(tracestore.AnyAttribute, "k", op, tracestore.Text(text))
	}
	for _, test := range []struct {
		e    tracestore.Expr
		want string
	}{
		{is(tracestore.Eq, "cart"), `{ .k = "cart" }`},
		{is(tracestore.Eq, "500"), `{ (.k = "500" || .k = 500) }`},
		{is(tracestore.Eq, "1234567890123456789"), `{ (.k = "1234567890123456789" || .k = 1234567890123456789) }`},
		{is(tracestore.Eq, "12345678901234567890"), `{ .k = "12345678901234567890" }`},
		{is(tracestore.Ne, "-0.5"), `{ (.k != "-0.5" || .k != -0.5) }`},
		{is(tracestore.Eq, "0.50"), `{ .k = "0.50" }`},
		{is(tracestore.Eq, "+5"), `{ .k = "+5" }`},
		{is(tracestore.Eq, "007"), `{ .k = "007" }`},
		{is(tracestore.Eq, "1e400"), `{ .k = "1e400" }`},
		{is(tracestore.Eq, "-0"), `{ .k = "-0" }`},
		{is(tracestore.Eq, "1e-07"), `{ (.k = "1e-07" || .k = 1e-07) }`},
		{is(tracestore.Eq, "100000000000000000000"), `{ .k = "100000000000000000000" }`},
		{is(tracestore.Eq, "NaN"), `{ .k = "NaN" }`},
		{is(tracestore.Lt, "5"), `{ .k < "5" }`},
		{tracestore.Not{Expr: is(tracestore.Eq, "true")}, `{ !(.k = "true" || .k = true) }`},
		{tracestore.And{is(tracestore.Eq, "1"), is(tracestore.Ne, "2")}, `{ (.k = "1" || .k = 1) && (.k != "2" || .k != 2) }`},
	} {
		got := Format(selected(test.e))
		if got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
		q, err := Parse(got)
		if err != nil {
			t.Errorf("%s: %v", got, err)
			continue
		}
		checkFormat(t, q.Set)
	}
}

// TestMarkStructure checks which part of a search is marked.
func TestMarkStructure(t *testing.T) {
	for text, want := range map[string]string{
		`{ .a > 1 } || ({ .b } &>> { .c })`: "&>>",
		`{ .a || .b } | count() > 2`:        "count",
		`count() > 2`:                       "count",
		`{ .a }`:                            "",
		`{ .a } | select(.b) | by((.c * 2)) | coalesce() | avg(duration) > 2 | { .d }`: "avg",
		`{ .a } | { "{ ) >" } && { .b }`:                                               "&&",
		`({ .a } | sum(.b)) > 2`:                                                       "sum",
		`{ .a } >> { .b } with (most_recent=true)`:                                     ">>",
		`{ .a } | { .b } | select(.c) with (sample=.1)`:                                "",
	} {
		e := MarkStructure(text, "message")
		if got := text[e.Offset : e.Offset+e.Length]; got != want || e.Msg != "message" {
			t.Errorf("%s: marked %q, want %q", text, got, want)
		}
	}
}

// checkFormat checks that parsing the formatted set returns the same set.
func checkFormat(t *testing.T, set storequery.SpanSet) {
	t.Helper()
	text := Format(set)
	if len(text) > MaxText {
		return
	}
	again, err := Parse(text)
	if err != nil {
		t.Errorf("parsing formatted set %s: %v", text, err)
	} else if !reflect.DeepEqual(again.Set, set) {
		t.Errorf("formatted set %s is parsed as %s", text, Format(again.Set))
	}
}

// TestFields checks the fields that names stand for.
func TestFields(t *testing.T) {
	for place, names := range map[tracestore.Place]string{
		tracestore.Service:       "service service.name .service.name resource.service.name",
		tracestore.Name:          "name span:name",
		tracestore.Kind:          "kind span:kind",
		tracestore.Status:        "status span:status",
		tracestore.StatusMessage: "statusMessage span:statusMessage",
		tracestore.Duration:      "duration span:duration",
		tracestore.ScopeName:     "instrumentation:name",
		tracestore.ScopeVersion:  "instrumentation:version",
		tracestore.EventName:     "event:name",
		tracestore.ParentID:      "span:parentID",
		tracestore.TraceDuration: "trace.duration trace:duration traceDuration",
		tracestore.RootService:   "trace.rootService trace:rootService rootServiceName",
		tracestore.RootName:      "trace.rootName trace:rootName rootName",
		tracestore.ChildCount:    "span:childCount childCount",
	} {
		for _, name := range strings.Fields(names) {
			checkField(t, name, tracestore.Field{Place: place})
		}
	}
	for name, want := range map[string]tracestore.Field{
		".name":                     {Place: tracestore.AnyAttribute, Key: "name"},
		`."a b"`:                    {Place: tracestore.AnyAttribute, Key: "a b"},
		"http.response.status_code": {Place: tracestore.AnyAttribute, Key: "http.response.status_code"},
		".trace.duration":           {Place: tracestore.AnyAttribute, Key: "trace.duration"},
		"span.service.name":         {Place: tracestore.SpanAttribute, Key: "service.name"},
		"span..a":                   {Place: tracestore.SpanAttribute, Key: ".a"},
		"span.größe/k8s-1:2@3":      {Place: tracestore.SpanAttribute, Key: "größe/k8s-1:2@3"},
		"resource.a":                {Place: tracestore.ResourceAttribute, Key: "a"},
		"event.name":                {Place: tracestore.EventAttribute, Key: "name"},
		"link.a":                    {Place: tracestore.LinkAttribute, Key: "a"},
		"instrumentation.a":         {Place: tracestore.ScopeAttribute, Key: "a"},
	} {
		checkField(t, name, want)
	}
}

func checkField(t *testing.T, name string, want tracestore.Field) {
	t.Helper()
	q, err := Parse("{ exists(" + name + ") } | select(duration, " + name + ")")
	if err != nil {
		t.Error(err)
		return
	}
	if got := q.Set.(storequery.Select).Where.(tracestore.Cond).Field; got != want || len(q.Select) != 2 || q.Select[1] != want {
		t.Errorf("%s is %v and selects %v, want %v", name, got, q.Select, want)
	}
	checkFormat(t, q.Set)
}

func TestParseFields(t *testing.T) {
	got, err := Language{}.ParseFields("name, span.\"a, b\" ,.c")
	want := []tracestore.Field{{Place: tracestore.Name}, {Place: tracestore.SpanAttribute, Key: "a, b"}, {Key: "c"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"": "column 1: ", "name,": "column 6: ", "name kind": "column 6: ", "error": "column 1: ", "\xff": "column 1: ", ".a)": "column 3: ",
		strings.Repeat("name,", MaxText): "column 16385: ",
	} {
		if _, err := (Language{}).ParseFields(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// TestFormat checks the canonical text of searches.
func TestFormat(t *testing.T) {
	for text, want := range map[string]string{
		"{(.a)}||( {error}>{duration>60m&&!root} )":   `{ .a = true } || { status = error } > { duration > 1h && !root }`,
		"({}||{})>>({}&&{})":                          `({} || {}) >> ({} && {})`,
		"{!.a&&!(.b||!error)&&.c=nil&&true}":          `{ !.a && !(.b = true || !error) && !exists(.c) }`,
		`{.a!~"x\\d"&&.b=~"\x60\""&&root}`:            "{ .a !~ `x\\d` && .b =~ \"`\\\"\" && root }",
		`{!(!(.a=~"b")&&exists(.a))||kind!=client}`:   `{ !(!(.a =~ "b") && exists(.a)) || kind != client }`,
		`{ 0s=duration||1e21<.a||.b>100000000000 }`:   `{ duration = 0s || .a > 1e+21 || .b > 1e+11 }`,
		`{ span."x\ty" = "tab	\t quote\" \\ line\n"}`: `{ span."x	y" = "tab		 quote\" \\ line\n" }`,
	} {
		q, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := Format(q.Set); got != want {
			t.Errorf("%s is formatted as\n%s, want\n%s", text, got, want)
		}
		checkFormat(t, q.Set)
	}
}

// TestErrors compares errors with testdata/errors.txt, which contains searches, each followed by an
// empty line, the error and a line of dashes.
func TestErrors(t *testing.T) {
	const rule = "\n----------------\n"
	file := filepath.Join("testdata", "errors.txt")
	examples, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for example := range strings.SplitSeq(strings.TrimSuffix(string(examples), rule), rule) {
		text, _, _ := strings.Cut(example, "\n\n")
		all.WriteString(text + "\n\n")
		_, err := Parse(text)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error %v is not an *Error", text, err)
			continue
		}
		all.WriteString(e.Detail() + rule)
	}
	golden.Check(t, file, all.String())
}

// TestNumberOfGroup formats the text of a value as a number, as the parser requires it.
func TestNumberOfGroup(t *testing.T) {
	got := Format(selected(cmp(tracestore.ChildCount, "", tracestore.Eq, tracestore.Text("3"))))
	if want := "{ span:childCount = 3 }"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLimits(t *testing.T) {
	deep := strings.Repeat("(", MaxDepth)
	closed := strings.Repeat(")", MaxDepth)
	many := func(n int) string { return "{.a" + strings.Repeat("||.a", n-1) + "}" }
	for _, test := range []struct{ name, within, beyond string }{
		{"16384", "{}" + strings.Repeat(" ", MaxText-2), "{}" + strings.Repeat("é", MaxText/2)},
		{"64 deep", deep + "{}" + closed, deep + "({})" + closed},
		{"64 deep", "{" + deep + ".a" + closed + "}", "({" + deep + ".a" + closed + "})"},
		{"256 conditions", many(MaxConditions), many(MaxConditions + 1)},
		{"256 conditions", strings.Repeat("{}>>", MaxConditions-1) + "{}", strings.Repeat("{}>>", MaxConditions) + "{}"},
		{"256 conditions", "{} | select(.a" + strings.Repeat(",.a", MaxConditions-2) + ")",
			"{} | select(.a" + strings.Repeat(",.a", MaxConditions-1) + ")"},
		{"5 stages by", "{}" + strings.Repeat("|by(.a)", MaxGroupings), "({}" + strings.Repeat("|by(.a)", MaxGroupings) + ")|by(.a)"},
		{"maximum is 1024", `{.a=~"` + strings.Repeat("a", MaxPattern) + `"}`, `{.a=~"` + strings.Repeat("a", MaxPattern+1) + `"}`},
		{"1024 steps", `{.a=~"(a{15}){30}"}`, `{.a=~"(abcdefghi){500}"}`},
		{"1024 steps", `{.a=~"a{200}"||.b=~"a{200}"}`, `{` + strings.Repeat(`.a=~"a{200}"||`, 5) + `.a}`},
		{"1024 steps", `{.a=~"\\pL{5}\\PL*[^\\pN]"}`, "{.a=~`" + strings.Repeat(`\pL`, 300) + "`}"},
		{"maximum is 106751d", `{duration<106751d}`, `{duration<106751d1ns}`},
	} {
		if _, err := Parse(test.within); err != nil {
			t.Errorf("within the limit %q: %v", test.name, err)
		}
		_, err := Parse(test.beyond)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, test.name) || len(e.Detail()) > 1000 {
			t.Errorf("beyond the limit %q: %v", test.name, err)
		}
	}
}

// TestHostile parses searches that could take long, overflow the stack or use much memory.
func TestHostile(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("(", MaxText), "{" + strings.Repeat("(", MaxText-1), "{" + strings.Repeat("!", MaxText-1),
		strings.Repeat("{}>>", MaxText/4), "{." + strings.Repeat("\"\".", MaxText/3-1), strings.Repeat("{", 1<<20), strings.Repeat("\xff", 1<<20),
		`{.a=~"((((a{30}){30}){30}){30})"}`, `{.a=~"` + strings.Repeat("(", 900) + `"}`, `{.a=~"(` + strings.Repeat(`\\pL`, 200) + `){30}"}`,
		"{" + strings.Repeat(`name=~"x*"||`, 1000) + "}", "{duration>0." + strings.Repeat("0", 10_000) + "q}",
	} {
		_, err := Parse(text)
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%.20s: %v", text, err)
		}
		if len(e.Detail()) > 1000 {
			t.Errorf("%.20s: error has %d bytes", text, len(e.Detail()))
		}
	}
}
