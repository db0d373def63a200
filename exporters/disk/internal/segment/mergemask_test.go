package segment

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/mark"
	"github.com/tracing-backend/tracing/exporters/disk/internal/mask"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TestMergeOfMasks: a merge of masked segments, some of which hide nothing or all, has the spans that are left.
func TestMergeOfMasks(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 5))
		s, fsys := randomSample(t, seed, 30), writeDir(t)
		inputs := split(t, fsys, s, 1+rng.IntN(4), rng)
		rules := []*mask.Rule{mask.NewRule(&mark.Mark{Number: 1, Through: 1, Tenant: "tenant 0", Service: "service 1", To: math.MaxUint64})}
		if n := len(s.spans); n > 0 && seed%2 == 0 {
			gone := []otlpdata.TraceID{s.spans[0].trace, s.spans[n/2].trace, s.spans[n-1].trace}
			rules = append(rules, mask.NewRule(&mark.Mark{Number: 2, Through: 1, Tenant: "tenant 1", Traces: gone}))
		}
		if seed%7 == 0 {
			rules = append(rules, mask.NewRule(&mark.Mark{Number: 3, Through: 1, Tenant: "tenant 1", To: math.MaxUint64}))
		}
		var masked []source.Source
		var left []storedSpan
		for i, in := range inputs {
			if i%3 == 2 {
				masked = append(masked, in)
			} else {
				masked = append(masked, mask.New(in, rules, nil))
			}
			left = append(left, visible(t, masked[i])...)
		}
		slices.SortFunc(left, func(a, b storedSpan) int {
			return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.content, b.content))
		})
		left = slices.Compact(left)
		info, err := Merge(fsys, "d/s", masked, Meta{}, MergeOptions{blockRows: 1 + rng.IntN(20)})
		if err != nil {
			t.Fatal(err)
		}
		if info.Rows != len(left) || info.Unreadable != 0 {
			t.Fatalf("seed %d: %+v, but %d spans are left", seed, info, len(left))
		}
		checkSame(t, fmt.Sprintf("seed %d", seed), readAll(t, fsys, "d/s"), left)
		checkHints(t, openTest(t, fsys, "d/s"))
	}
}

// visible reads all spans that a source shows.
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
