package explain

import (
	"math"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// answer is the data of GET /api/ui/v1/explain. Times are means of all traces of a side in
// nanoseconds, shares are from 0 to 1.
type answer struct {
	Selected sideAnswer `json:"selected"`
	Rest     sideAnswer `json:"rest"`
	// MinTraces is the minimum number of traces of each side. With fewer, the lists are empty.
	MinTraces  int              `json:"minTraces"`
	Attributes attributesAnswer `json:"attributes"`
	Time       timeAnswer       `json:"time"`
	Shape      shapeAnswer      `json:"shape"`
	Paths      pathColumns      `json:"paths"`
}

// sideAnswer describes the traces of a side.
type sideAnswer struct {
	Traces    uint64  `json:"traces"`    // examined
	Estimated uint64  `json:"estimated"` // of all
	Exact     bool    `json:"exact"`     // whether the number is exact
	Share     float64 `json:"share"`     // examined share
	Spans     uint64  `json:"spans"`     // of the examined traces
	Failed    uint64  `json:"failed"`    // examined traces with a failed span
	Time      float64 `json:"time"`      // length of the critical path
	// Least is the minimum duration of selected traces; only if the slowest ones are selected.
	Least uint64 `json:"least,omitempty"`
}

func answerOf(p *tracestore.PathProfile, c *counter) *answer {
	out := &answer{Selected: sideOf(&p.Selected), Rest: sideOf(&p.Rest), MinTraces: minTraces}
	out.Attributes = c.answer(weightsOf(c.sides(), out))
	times, shapes := RankTime(p), RankShape(p)
	out.Paths = pathsOf(p, &times, shapes, c.waitingOn())
	out.Time = timeOf(p, &times, out.Paths.index)
	out.Shape = shapeOf(p, shapes, out.Paths.index)
	return out
}

func sideOf(s *tracestore.PathSet) sideAnswer {
	out := sideAnswer{Traces: s.Traces, Estimated: s.Traces, Share: s.Share, Spans: s.Spans, Failed: s.Failed}
	out.Time = math.Round(mean(float64(s.Time), s))
	if s.Share > 0 {
		out.Estimated = round(float64(s.Traces) / s.Share)
	}
	return out
}

// weights are, for each side, the number of traces that a counted trace represents.
type weights struct{ selected, rest float64 }

func weightsOf(counted pair, a *answer) weights {
	weight := func(s *sideAnswer, counted int) float64 { return float64(s.Estimated) / float64(max(counted, 1)) }
	return weights{weight(&a.Selected, counted.selected), weight(&a.Rest, counted.rest)}
}

func round(f float64) uint64 { return uint64(max(math.Round(f), 0)) }

func rounded(list []float64) []uint64 {
	out := make([]uint64, len(list))
	for i, f := range list {
		out[i] = round(f)
	}
	return out
}
