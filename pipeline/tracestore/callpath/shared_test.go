package callpath

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// sharedTrace is a trace with the own times of its spans on the critical path. Spans are in the
// order of an outline: parents before children, and children by start.
type sharedTrace struct {
	Parent   []int    `json:"parent"` // -1: none
	Root     []bool   `json:"root"`   // the span has no parent; otherwise the parent of a span without one is missing
	Start    []uint64 `json:"start"`
	Duration []uint64 `json:"duration"`
	Kind     []int32  `json:"kind"`
	Service  []string `json:"service"`
	Own      []uint64 `json:"own"`
	Nothing  uint64   `json:"nothing"` // time between spans without parent
}

// TestSharedTraces writes the traces with which path.test.ts of the web UI tests its own
// calculation of the critical path: both must agree.
func TestSharedTraces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var lines []string
	for i := range 80 {
		one, err := json.Marshal(share(randomSpans(random, 1+i/4)))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(one))
	}
	golden.Check(t, "testdata/critical-paths.ndjson", strings.Join(lines, "\n")+"\n")
}

// randomSpans returns a trace. Children may be outside their parents, and parents may be missing.
func randomSpans(r *rand.Rand, n int) []tracestore.SummarySpan {
	spans := make([]tracestore.SummarySpan, n)
	for i := range spans {
		s := &spans[i]
		*s = tracestore.SummarySpan{ID: otlpdata.SpanID{byte(i + 1)}, Start: begin + r.Uint64N(100), Duration: 1 + r.Uint64N(200),
			Kind: r.Int32N(6), Service: string(rune('a' + r.IntN(3)))}
		if i == 0 || r.IntN(12) == 0 {
			if r.IntN(3) == 0 {
				s.Parent = otlpdata.SpanID{0xff} // missing
			}
			continue
		}
		above := &spans[r.IntN(i)]
		s.Parent = above.ID
		s.Start = above.Start - 3 + r.Uint64N(above.Duration+8)
		s.Duration = 1 + r.Uint64N(above.Duration+5)
	}
	return spans
}

func share(spans []tracestore.SummarySpan) (out sharedTrace) {
	var t Tree
	t.Build(spans)
	own := make([]uint64, len(spans))
	t.CriticalPath(func(span int, time uint64) {
		if span < 0 {
			out.Nothing += time
		} else {
			own[span] += time
		}
	})
	var add func(span int32, parent int)
	add = func(span int32, parent int) {
		at, s := len(out.Parent), &t.spans[span]
		out.Parent, out.Root = append(out.Parent, parent), append(out.Root, s.Parent.IsZero())
		out.Start, out.Duration = append(out.Start, s.Start), append(out.Duration, s.Duration)
		out.Kind, out.Service, out.Own = append(out.Kind, s.Kind), append(out.Service, s.Service), append(out.Own, own[span])
		for _, c := range t.childrenOf(span) {
			add(c, at)
		}
	}
	for _, top := range t.tops {
		add(top, -1)
	}
	return out
}
