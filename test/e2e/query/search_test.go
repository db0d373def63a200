package query_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestSearchOrderAndLimit checks that a search returns the newest traces first, and applies the
// limit after the conditions.
func TestSearchOrderAndLimit(t *testing.T) {
	p := inprocess.Start(t)
	at := time.Now().Add(-time.Hour)
	var ids []string
	for i := range 10 {
		id := fmt.Sprintf("%032x", i+1)
		if i%2 == 0 {
			ids = append([]string{strings.TrimPrefix(id, strings.Repeat("0", 16))}, ids...)
		}
		name := []string{"even", "odd"}[i%2]
		if status, body := p.PostOTLP("application/json", harness.JSONSpan(id, "checkout", name,
			at.Add(time.Duration(i)*time.Second), time.Second)); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
	}
	for limit := 1; limit <= 5; limit++ {
		got := p.Search("service", "checkout", "operation", "even", "limit", fmt.Sprint(limit))
		if !slices.Equal(got, ids[:limit]) {
			t.Errorf("limit %d: %v, want %v", limit, got, ids[:limit])
		}
	}
}
