package traceql

import (
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// relatives is a trace with two roots, a and e, and an orphan, o.
func relatives() (out []tracestore.Span) {
	add := func(name, parent string, duration time.Duration, attributes ...otlpdata.KeyValue) {
		s := &otlpdata.Span{TraceID: otlpdata.TraceID{15: 1}, Name: name, Start: uint64(len(out)), Attributes: attributes}
		copy(s.SpanID[:], name)
		copy(s.ParentID[:], parent)
		s.End = s.Start + uint64(duration)
		out = append(out, tracestore.Span{Resource: &otlpdata.Resource{Service: "s"}, Scope: &otlpdata.Scope{}, Span: s})
	}
	number := func(n int64) otlpdata.KeyValue { return otlpdata.KeyValue{Key: "n", Value: otlpdata.IntValue(n)} }
	text := func(s string) otlpdata.KeyValue { return otlpdata.KeyValue{Key: "t", Value: otlpdata.StringValue(s)} }
	add("a", "", 100*time.Millisecond, number(1))
	add("b", "a", 50*time.Millisecond, number(2), text("x"))
	add("c", "b", 20*time.Millisecond, number(3), text("c"))
	add("d", "a", 10*time.Millisecond, number(2), text("y"))
	add("e", "", time.Millisecond)
	add("o", "missing", time.Millisecond)
	return out
}

// TestArrays checks that conditions find arrays by their elements and their JSON.
func TestArrays(t *testing.T) {
	attributes := []otlpdata.KeyValue{{Key: "k", Value: otlpdata.ParseJSON(`["a"]`)}, {Key: "a", Value: otlpdata.StringValue("a")},
		{Key: "ab", Value: otlpdata.ParseJSON(`["a","b",1]`)}}
	for text, want := range map[string]bool{
		"{ .k = `[\"a\"]` }":    true,
		"{ .k != `[\"a\"]` }":   false,
		"{ .k = `[\"b\"]` }":    false,
		"{ .k != `{\"a\":1}` }": true,
		"{ .k < `[` }":          false,
		`{ .k > "Z" }`:          true,
		`{ .k = "a" }`:          true,
		`{ .k != "a" }`:         false,
		`{ .k != "b" }`:         true,
		`{ .k = 1 }`:            false,
		`{ .ab != "b" }`:        false,
		`{ .ab >= 1 }`:          true,
		`{ .ab != 1 }`:          false,
		`{ .ab =~ "b" }`:        true,
		`{ .ab !~ "b" }`:        false,
		`{ .ab !~ "c" }`:        true,
		`{ .ab + 1 = 2 }`:       false,
		`{ .ab != nil }`:        true,
		`{ .a = .ab }`:          true,
		`{ .ab != .a }`:         false,
		`{ .k = .ab }`:          false,
	} {
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		span := &otlpdata.Span{Attributes: attributes}
		s := tracestore.Span{Resource: &otlpdata.Resource{}, Scope: &otlpdata.Scope{}, Span: span}
		if got := tracestore.Match(q.Set.(storequery.Select).Where, s); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestEvaluate checks which spans searches select.
func TestEvaluate(t *testing.T) {
	trace := relatives()
	for text, want := range map[string]string{
		`{ 1 = 2 }`:                                        "",
		`{ "ab" =~ "a." && 2 * 3 > 5 }`:                    "abcdeo",
		`{ .n = 1 || .n = 2 && .t = "x" }`:                 "b",
		`{ .n = 1 || (.n = 2 && .t = "x") }`:               "ab",
		`{ name = "a" } || { name = "b" } && { .n = 9 }`:   "",
		`{ .n + 1 = 3 }`:                                   "bd",
		`{ .n / 2 = 1 }`:                                   "bcd",
		`{ .n * 1.0 / 2 = 1 }`:                             "bd",
		`{ 2 ^ .n ^ 1 = 8 }`:                               "c",
		`{ -.n = -2 }`:                                     "bd",
		`{ .n % 2 = 1 }`:                                   "ac",
		`{ duration >= 2 * 50ms }`:                         "a",
		`{ duration > 20000001 && duration < .n * 100ms }`: "b",
		`{ .t = name }`:                                    "c",
		`{ .t != name }`:                                   "bd",
		`{ .t = .n }`:                                      "",
		`{ .missing != 1 || .n != .missing }`:              "",
		`{ .n = nil }`:                                     "eo",
		`{ .n + 1 != nil && nil != .t }`:                   "bcd",
		`{ (.n = 2) = (.t = "x") }`:                        "abceo",
		`{ (.n = 2) = false }`:                             "aceo",
		`{ error = root }`:                                 "bcdo",
		`{ parent.n = 1 }`:                                 "bd",
		`{ parent.span.t =~ "x" }`:                         "c",
		`{ parent.n = nil }`:                               "aeo",
		`{ .n > parent.n }`:                                "bcd",
		`{ nestedSetParent < 0 }`:                          "ae",
		`{ nestedSetLeft = 0 }`:                            "o",
		`{ nestedSetRight - nestedSetLeft = 1 }`:           "cde",
		`{ nestedSetParent = 1 && nestedSetLeft = 6 }`:     "d",
		`{ span:id = "6300000000000000" }`:                 "c",
		`{ trace:id = "1" && name = "o" }`:                 "o",
		`{ trace:id = "2" }`:                               "",
		`{ name = "c" } << {}`:                             "ab",
		`{ name = "c" } < {}`:                              "b",
		`{ name = "b" } ~ {}`:                              "d",
		`{} ~ {}`:                                          "abde",
		`{ name = "a" } !>> {}`:                            "aeo",
		`{ name = "c" } !<< {}`:                            "cdeo",
		`{ .n = 9 } !> { .n = 2 }`:                         "bd",
		`{ name = "b" } !~ { .n != nil }`:                  "abc",
		`{ name = "a" } &>> { name = "c" }`:                "ac",
		`{ name = "c" } &< {}`:                             "bc",
		`{ name = "b" } &~ { name = "d" }`:                 "bd",
		`{ .n = 9 } &>> {}`:                                "",
		`({} &>> { name = "c" }) || ({ name = "e" }) | select(nestedSetLeft)`: "abce",
		`{} | count() > 6`:                            "",
		`count() = 6`:                                 "abcdeo",
		`(count() > 6)`:                               "",
		`{} | (count() > 5)`:                          "abcdeo",
		`((count()) > 5) | { .n = 1 }`:                "a",
		`((count() + 1)) > 6`:                         "abcdeo",
		`{} | by(.n) | (count() > 1 | { .t != nil })`: "bd",
		`(((count()) + ({ .n = 2 } | max(.n) > 1 | count())) > 3)`: "bd",
		`by(.n) | count() > 1`: "bdeo",
		`{ .n != nil } | by(.n) | count() > 1 | coalesce() | count() = 2`: "bd",
		`{} | by(.n / 2) | max(duration) = 50ms`:                          "bcd",
		`{} | avg(.n) = 2`:                                                "abcdeo",
		`{ .n = 2 } | sum(.n) = 4 | min(duration) = 10ms | { .t = "y" }`:  "d",
		`{ .n = nil } | max(.n) != 5`:                                     "",
		`{} | by(name) | { .n = 2 }`:                                      "bd",
		`{ .n = 2 } | { name = "b" } || {}`:                               "bd",
		`({ .n = 2 } | count()) > ({ .n = 3 } | count())`:                 "bcd",
		`{} | ({ .n = 2 } | count()) + 1 = 3 | { .t != nil }`:             "bcd",
		`({} | count() > 1 | { .n = 1 }) > { .t = "x" }`:                  "b",
		"{ .n = 1 } // a comment\n || /* and another */ { .n = 3 }":       "ac",
	} {
		q, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got strings.Builder
		for i, selected := range storequery.Evaluate(q.Set, trace) {
			if selected {
				got.WriteString(trace[i].Name)
			}
		}
		if got.String() != want {
			t.Errorf("%s selects %q, want %q", text, got.String(), want)
		}
		checkFormat(t, q.Set)
	}
}
