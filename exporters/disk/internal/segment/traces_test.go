package segment

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TestTraces compares reading many traces together with reading each one.
func TestTraces(t *testing.T) {
	s := randomSample(t, 9, 80)
	seg, _ := writeSample(t, s, 20)
	tables, err := seg.Tables()
	if err != nil {
		t.Fatal(err)
	}
	const tenant = "tenant 1"
	spans := map[otlpdata.TraceID][]storedSpan{{0xff, 1}: nil} // an absent trace
	for _, sp := range s.spans {
		if sp.tenant == tenant {
			spans[sp.trace] = append(spans[sp.trace], sp)
		}
	}
	var all []otlpdata.TraceID
	for id := range spans {
		all = append(all, id)
	}
	if len(all) < 10 {
		t.Fatalf("%d traces", len(all))
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		some := all[:1+rng.IntN(len(all))]
		got := make([][]storedSpan, len(some))
		err := seg.Traces(t.Context(), tenant, some, func(b source.Block, which int, list []int32) error {
			for _, row := range list {
				sp, err := spanOf(tables, b, int(row))
				if err != nil {
					return err
				}
				got[which] = append(got[which], sp)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range some {
			checkSame(t, fmt.Sprintf("trace %v among %d", id, len(some)), got[i], spans[id])
		}
	}
}
