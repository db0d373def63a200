package httpapi

import (
	"net/url"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// TestConditionParam checks the condition on single spans that a search stands for, and which part
// an error marks if there is none.
func TestConditionParam(t *testing.T) {
	for text, want := range map[string]string{
		`{ .a } || ({ .b })`:                                    `{ .a || .b }`,
		`{ .a } | select(.b)`:                                   `{ .a }`,
		`({ .a } || { .b }) | by(.c) | { .d } | coalesce()`:     `{ (.a || .b) && .d }`,
		`{ .a } | by(.b) | { .c || .d } | select(.e)`:           `{ .a && (.c || .d) }`,
		`{ .a } > { .b } | select(.c)`:                          ">",
		`{ .a } | select(.b) | by(.c) | count() > 2 | by(.d)`:   "count",
		`{ .a } | by(.b) | ({ .c } && { .d }) | select(.e, .f)`: "&&",
	} {
		e, err := ConditionParam(traceql.Language{}, url.Values{"q": {text}}, "q")
		if err == nil {
			if got := traceql.Format(storequery.Select{Where: e}); got != formatted(t, want) {
				t.Errorf("%s: got %s, want %s", text, got, want)
			}
			continue
		}
		if got := marked(err.Error()); got != want {
			t.Errorf("%s: marked %q, want %q: %v", text, got, want, err)
		}
	}
}

// formatted returns a search as Format writes it.
func formatted(t *testing.T, text string) string {
	t.Helper()
	q, err := traceql.Parse(text)
	if err != nil {
		return text
	}
	return traceql.Format(q.Set)
}

// marked returns the part of the search that the lines of an error mark.
func marked(text string) string {
	lines := strings.Split(text, "\n")
	marks := lines[len(lines)-1]
	begin := strings.IndexByte(marks, '^')
	return lines[len(lines)-2][begin:len(marks)]
}
