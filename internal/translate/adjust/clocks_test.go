package adjust_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Without a limit, spans on unknown hosts are moved only if they start too early.
func TestAlignAllClocks(t *testing.T) {
	f := func(want string, spans ...adjust.ClockSpan) {
		t.Helper()
		got := ""
		for i := range spans {
			spans[i].ID = otlpdata.SpanID{7: byte(i + 1)}
			spans[i].Parent = otlpdata.SpanID{7: byte(i)}
		}
		adjust.AlignClocks(spans, 0, func(at int, shift int64, problem string) { got += fmt.Sprint(at, " ", shift, problem, ";") })
		if got != want {
			t.Errorf("%+v: %s, want %s", spans, got, want)
		}
	}
	root := adjust.ClockSpan{Start: 100, Duration: 100, Host: 1}
	f("1 -150;", root, adjust.ClockSpan{Start: 250, Duration: 100, Host: 2}) // late, on another host
	f("", root, adjust.ClockSpan{Start: 150, Duration: 80})                  // ends late, on an unknown host
	f("1 85;2 84;", root, adjust.ClockSpan{Start: 60, Duration: 10}, adjust.ClockSpan{Start: 65, Duration: 2})
	root.Start = math.MaxUint64 - 1
	f("1 9223372036854775807;", root, adjust.ClockSpan{Start: 1, Duration: 1, Host: 2})
}

// AlignClocks moves the same spans as Walk, by the same time. IsSkewed finds all traces in which a
// span is moved.
func TestAlignClocks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 19))
	for range 500 {
		legs := make([]leg, 1+rnd.IntN(6))
		for i := range legs {
			legs[i] = leg{[]string{"", "a", "b"}[rnd.IntN(3)], byte(i + 1), byte(rnd.IntN(7)), uint64(rnd.IntN(20)), 0}
			legs[i].end = legs[i].start + uint64(1+rnd.IntN(10))
		}
		limit := []time.Duration{time.Hour, 4 * time.Millisecond}[rnd.IntN(2)]
		var spans []adjust.ClockSpan
		for _, l := range legs {
			spans = append(spans, adjust.ClockSpan{ID: otlpdata.SpanID{7: l.id}, Parent: otlpdata.SpanID{7: l.parent}, Start: l.start * 1e6,
				Duration: (l.end - l.start) * 1e6, Host: map[string]uint32{"a": 1, "b": 2}[l.host]})
		}
		var want []string
		for i, s := range walk(t, adjust.Options{MaxClockSkew: limit}, batch(legs...)).spans {
			if s.Start != spans[i].Start {
				want = append(want, fmt.Sprint(i, int64(s.Start-spans[i].Start)))
			}
		}
		var got []string
		problems := 0
		adjust.AlignClocks(spans, limit, func(at int, shift int64, problem string) {
			if problem == "" {
				got = append(got, fmt.Sprint(at, shift))
			} else {
				problems++
			}
		})
		skewed := false
		for i := range spans {
			for j := range spans {
				skewed = skewed || i != j && spans[j].ID == spans[i].Parent && adjust.IsSkewed(&spans[j], &spans[i])
			}
		}
		if !reflect.DeepEqual(got, want) || !skewed && len(got)+problems > 0 {
			t.Fatalf("%v, limit %s: moved %q, want %q; %d problems, skewed %t", legs, limit, got, want, problems, skewed)
		}
	}
}
