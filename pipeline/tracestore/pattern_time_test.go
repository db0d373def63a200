package tracestore

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

// matchWithLimit matches a text n times in a query whose patterns may take limit, and returns the
// error of the query.
func matchWithLimit(t *testing.T, limit time.Duration, n int) error {
	t.Helper()
	inner, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx := WithPatternLimit(inner, cancel, limit)
	derived, end := context.WithCancel(ctx)
	defer end()
	e := WithContext(derived, Cond{Field: Field{Place: Name}, Op: Like, Value: Pattern(regexp.MustCompile("(a|aa)+$"))}).(Cond)
	text := strings.Repeat("a", 1000)
	for range n {
		if !e.Value.like(text) {
			t.Fatal("no match")
		}
	}
	if ctx.Err() != nil {
		<-derived.Done()
		if derived.Err() != ctx.Err() {
			t.Errorf("a derived context has the error %v", derived.Err())
		}
	}
	return ctx.Err()
}

func TestPatternTime(t *testing.T) {
	if err := matchWithLimit(t, time.Hour, 100); err != nil {
		t.Errorf("below the limit: %v", err)
	}
	if err := matchWithLimit(t, 1, 100); !errors.Is(err, ErrPatternTime) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("above the limit: %v", err)
	}
}

// A context with a limit ends with its parent.
func TestPatternLimitKeepsParent(t *testing.T) {
	inner, cancel := context.WithCancel(t.Context())
	ctx := WithPatternLimit(inner, cancel, time.Hour)
	cancel()
	<-ctx.Done()
	if ctx.Err() != context.Canceled {
		t.Error(ctx.Err())
	}
}
