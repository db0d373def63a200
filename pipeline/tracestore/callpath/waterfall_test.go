package callpath

import (
	"errors"
	"reflect"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestWaterfall(t *testing.T) {
	var w Waterfall
	var tree Tree
	for i := range 20 {
		root := sample{name: "GET /", long: 100 + i, kind: otlpdata.KindServer}
		root.children = append(root.children, sample{name: "query", service: "db", at: 10 + i, long: 20 + i, failed: i == 3})
		if i%2 == 0 {
			root.children = append(root.children, sample{name: "query", service: "db", at: 50, long: 5})
		}
		tree.Build(spansOf(root))
		if err := w.AddTrace(&tree, otlpdata.TraceID{byte(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	profile, times := w.Answer()
	if len(profile.Paths) != 2 || profile.Selected.Traces != 20 || profile.Paths[1].Selected.Calls != 30 {
		t.Fatalf("profile %+v", profile)
	}
	child := func(n byte) otlpdata.SpanID { return otlpdata.SpanID{0, 0, n} }
	want := []PathTimes{
		{P50: 109, P95: 118, Time: 20*100 + 190, Slowest: Example{otlpdata.TraceID{20}, child(1), 119}},
		{Start: 24, P50: 24, P95: 38, Time: 20*20 + 190 + 10*5, Slowest: Example{otlpdata.TraceID{20}, child(2), 39},
			Failed: Example{otlpdata.TraceID{4}, child(2), 23}},
	}
	if !reflect.DeepEqual(times, want) {
		t.Errorf("got  %+v\nwant %+v", times, want)
	}
}

func TestWaterfallOfNothing(t *testing.T) {
	var w Waterfall
	if profile, times := w.Answer(); len(profile.Paths)+len(times) != 0 {
		t.Errorf("%d paths, %d times", len(profile.Paths), len(times))
	}
}

// TestWaterfallOrder checks that examples do not depend on the order of the traces.
func TestWaterfallOrder(t *testing.T) {
	for _, ids := range [][]byte{{1, 2, 3}, {3, 1, 2}} {
		var w Waterfall
		var tree Tree
		for _, id := range ids {
			tree.Build(shop(2, true))
			if err := w.AddTrace(&tree, otlpdata.TraceID{id}); err != nil {
				t.Fatal(err)
			}
		}
		_, times := w.Answer()
		want := Example{otlpdata.TraceID{1}, otlpdata.SpanID{0, 0, 2}, 80}
		if got := times[1]; got.Slowest != want || got.Failed != want {
			t.Errorf("traces %v: %+v", ids, got)
		}
	}
}

// noMemory is an account with nothing left.
type noMemory struct{}

var errNoMemory = errors.New("no memory")

func (noMemory) Grow(int64) error { return errNoMemory }
func (noMemory) Shrink(int64)     {}

// TestWaterfallMemory checks that a trace that does not fit is not counted.
func TestWaterfallMemory(t *testing.T) {
	m, err := tracestore.Reserve(tracestore.WithAccount(t.Context(), noMemory{}), 0)
	if err != nil {
		t.Fatal(err)
	}
	var w Waterfall
	w.ChargeTo(m)
	var tree Tree
	tree.Build(shop(100, false))
	if err := w.AddTrace(&tree, otlpdata.TraceID{1}); !errors.Is(err, errNoMemory) {
		t.Errorf("error %v", err)
	}
	if profile, _ := w.Answer(); profile.Selected.Traces != 0 {
		t.Errorf("%d traces", profile.Selected.Traces)
	}
}
