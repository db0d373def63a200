package adjust_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Spans are moved by the least with which they are within their parents.
func TestAlignClocks(t *testing.T) {
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
	const ms = 1_000_000
	f("1 -1900000;", adjust.ClockSpan{Start: 100 * ms, Duration: 100 * ms, Host: 1},
		adjust.ClockSpan{Start: 158 * ms, Duration: 43900000, Host: 2})
	// Late, on another host.
	f("1 -150;", root, adjust.ClockSpan{Start: 250, Duration: 100, Host: 2})
	// Longer.
	f("", root, adjust.ClockSpan{Start: 250, Duration: 101, Host: 2})
	// A message.
	f("", root, adjust.ClockSpan{Start: 250, Duration: 100, Host: 2, Kind: otlpdata.KindConsumer})
	// That arrives early.
	f("1 20;", root, adjust.ClockSpan{Start: 80, Duration: 300, Host: 2, Kind: otlpdata.KindConsumer})
	// Ends late, on an unknown host.
	f("", root, adjust.ClockSpan{Start: 150, Duration: 80})
	// The same clock.
	f("", root, adjust.ClockSpan{Start: 90, Duration: 200, Host: 1})
	// In step with its parent.
	f("1 40;2 40;", root, adjust.ClockSpan{Start: 60, Duration: 10}, adjust.ClockSpan{Start: 65, Duration: 2})
	f("1 40;2 40;", root, adjust.ClockSpan{Start: 60, Duration: 10, Host: 2}, adjust.ClockSpan{Start: 62, Duration: 2, Host: 2})
	root.Start = math.MaxUint64 - 1
	f("1 9223372036854775807;", root, adjust.ClockSpan{Start: 1, Duration: 1, Host: 2})
}

// sharedTrace is a trace with the corrections of its spans. Parents come before their children.
type sharedTrace struct {
	Parent   []int    `json:"parent"` // -1: none
	Start    []uint64 `json:"start"`
	Duration []uint64 `json:"duration"`
	Host     []uint32 `json:"host"`
	Consumer []bool   `json:"consumer"`
	Shift    []int64  `json:"shift"`
}

// TestSharedTraces writes the traces with which files.test.ts of the web UI tests its own
// correction: both must agree. IsSkewed finds all traces in which a span is moved.
func TestSharedTraces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 19))
	var lines []string
	for range 60 {
		var out sharedTrace
		var spans []adjust.ClockSpan
		skewed := false
		for i := range 1 + rnd.IntN(9) {
			s := adjust.ClockSpan{ID: otlpdata.SpanID{7: byte(i + 1)}, Start: 100 + rnd.Uint64N(20), Duration: 1 + rnd.Uint64N(30),
				Host: rnd.Uint32N(3)}
			parent := rnd.IntN(i+1) - 1
			if parent >= 0 {
				s.Parent = spans[parent].ID
				skewed = skewed || adjust.IsSkewed(&spans[parent], &s)
			}
			if rnd.IntN(5) == 0 {
				s.Kind = otlpdata.KindConsumer
			}
			spans = append(spans, s)
			out.Parent, out.Start, out.Duration = append(out.Parent, parent), append(out.Start, s.Start), append(out.Duration, s.Duration)
			out.Host, out.Consumer = append(out.Host, s.Host), append(out.Consumer, s.Kind == otlpdata.KindConsumer)
		}
		out.Shift = make([]int64, len(spans))
		adjust.AlignClocks(spans, 0, func(at int, shift int64, problem string) {
			if problem != "" || !skewed {
				t.Errorf("%+v: span %d, problem %q, skewed %t", spans, at, problem, skewed)
			}
			out.Shift[at] = shift
		})
		line, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	golden.Check(t, "testdata/least-shifts.ndjson", strings.Join(lines, "\n")+"\n")
}

// A correction above the limit is a warning.
func TestAlignClocksLimit(t *testing.T) {
	root := adjust.ClockSpan{ID: otlpdata.SpanID{1}, Start: 100, Duration: 100, Host: 1}
	child := adjust.ClockSpan{ID: otlpdata.SpanID{2}, Parent: root.ID, Start: 60, Duration: 10, Host: 2}
	for limit, want := range map[time.Duration]string{
		40: "1 40 ",
		39: "1 0 max clock skew adjustment delta of 39ns exceeded; not applying calculated delta of 40ns",
	} {
		adjust.AlignClocks([]adjust.ClockSpan{root, child}, limit, func(at int, shift int64, problem string) {
			if got := fmt.Sprint(at, " ", shift, " ", problem); got != want {
				t.Errorf("limit %s: %s, want %s", limit, got, want)
			}
		})
	}
}
