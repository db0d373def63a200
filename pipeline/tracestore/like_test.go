package tracestore

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// endingContext ends after a number of calls of Err, and counts the calls.
type endingContext struct {
	context.Context
	left, calls int
}

func (c *endingContext) Err() error {
	if c.calls++; c.calls > c.left {
		return context.Canceled
	}
	return nil
}

func likeCond(pattern string) Cond {
	return Cond{Field: Field{Place: SpanAttribute, Key: "k"}, Op: Like, Value: Pattern(regexp.MustCompile(pattern))}
}

// TestLikeWithContext checks that a regular expression has the same result with a context.
func TestLikeWithContext(t *testing.T) {
	long := strings.Repeat("aé ", likeStep)
	for _, text := range []string{
		"", "foo bar", "xfoo", long, long + "foo", "foo" + long, long + "\xff\xfefoo\n", "\xc3" + long, long + " Foo ",
	} {
		for _, pattern := range []string{
			"", "foo", "^foo", "^foo$", "foo$",
			"^(foo|a).*o$", `\bfoo\b`, "(?i)FOO", "(?s)^.*foo.$", "a.*foo", "o$", "[^a]{3}foo", `\xff`, "foo.?",
		} {
			c, v := likeCond(pattern), otlpdata.StringValue(text)
			bound := WithContext(t.Context(), And{Or{Not{c}}}).(And)[0].(Or)[0].(Not).Expr.(Cond)
			if want := regexp.MustCompile(pattern).MatchString(text); c.Holds(v) != want || bound.Holds(v) != want {
				t.Errorf("%q on %d bytes: %t, with a context %t, want %t", pattern, len(text), c.Holds(v), bound.Holds(v), want)
			}
		}
	}
}

// TestLikeEnds checks that a regular expression examines little more of a long value after its
// context has ended.
func TestLikeEnds(t *testing.T) {
	v := otlpdata.StringValue(strings.Repeat("a", MaxLikeBytes) + "b")
	ctx := &endingContext{Context: t.Context(), left: 1 << 30}
	c := WithContext(ctx, likeCond("(a?){50}[bc]x")).(Cond)
	if c.Holds(v) || ctx.calls < MaxLikeBytes/likeStep {
		t.Errorf("context checked %d times, want %d", ctx.calls, MaxLikeBytes/likeStep)
	}
	for left := range 3 {
		*ctx = endingContext{Context: t.Context(), left: left}
		if c.Holds(v); ctx.calls != left+1 {
			t.Errorf("context checked %d times, but it ended after %d", ctx.calls, left)
		}
	}
}
