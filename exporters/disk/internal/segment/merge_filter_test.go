package segment

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TestMergeFiltered checks that merging filtered segments keeps exactly the visible spans.
func TestMergeFiltered(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 5))
		s, fsys := randomSample(t, seed, 30), writeDir(t)
		inputs := split(t, fsys, s, 1+rng.IntN(4), rng)
		rules := []*tombstone.Rule{tombstone.NewRule(&tombstone.Tombstone{
			Number: 1, Through: 1, Tenant: "tenant 0", Service: "service 1", To: math.MaxUint64})}
		if n := len(s.spans); n > 0 && seed%2 == 0 {
			gone := []otlpdata.TraceID{s.spans[0].trace, s.spans[n/2].trace, s.spans[n-1].trace}
			rules = append(rules, tombstone.NewRule(&tombstone.Tombstone{Number: 2, Through: 1, Tenant: "tenant 1", Traces: gone}))
		}
		if seed%7 == 0 {
			rules = append(rules, tombstone.NewRule(&tombstone.Tombstone{Number: 3, Through: 1, Tenant: "tenant 1", To: math.MaxUint64}))
		}
		var filtered []source.Source
		var visibleSpans []storedSpan
		for i, in := range inputs {
			if i%3 == 2 {
				filtered = append(filtered, in)
			} else {
				filtered = append(filtered, tombstone.NewFilter(in, rules, nil))
			}
			visibleSpans = append(visibleSpans, visible(t, filtered[i])...)
		}
		slices.SortFunc(visibleSpans, func(a, b storedSpan) int {
			return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.content, b.content))
		})
		visibleSpans = slices.Compact(visibleSpans)
		info, err := Merge(fsys, "d/s", filtered, Meta{}, MergeOptions{blockRows: 1 + rng.IntN(20)})
		if err != nil {
			t.Fatal(err)
		}
		if info.Rows != len(visibleSpans) || info.Unreadable != 0 {
			t.Fatalf("seed %d: %+v, want %d rows", seed, info, len(visibleSpans))
		}
		checkSame(t, fmt.Sprintf("seed %d", seed), readAll(t, fsys, "d/s"), visibleSpans)
		checkHints(t, openTest(t, fsys, "d/s"))
	}
}

// visible reads all spans of a source.
func visible(t *testing.T, s source.Source) (spans []storedSpan) {
	t.Helper()
	tables, err := s.Tables()
	if err != nil {
		t.Fatal(err)
	}
	infos, err := s.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	for i := range infos {
		b, err := s.Open(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		for row := range b.Len() {
			span, err := spanOf(tables, b, row)
			if err != nil {
				t.Fatal(err)
			}
			spans = append(spans, span)
		}
		b.Close()
	}
	return spans
}
