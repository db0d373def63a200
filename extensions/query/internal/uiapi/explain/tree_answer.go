package explain

import (
	"cmp"
	"encoding/hex"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/callpath"
)

// treeAnswer is the data of GET /api/ui/v1/tree.
type treeAnswer struct {
	Set   sideAnswer  `json:"set"`
	Paths treeColumns `json:"paths"`
}

// treeColumns are call paths: a list for each member. Parents come before their children. Times are
// nanoseconds.
type treeColumns struct {
	Parent  []int            `json:"parent"` // index, or -1
	Service []string         `json:"service"`
	Name    []string         `json:"name"`
	Kind    []string         `json:"kind"`
	Traces  []uint64         `json:"traces"` // examined traces that have it
	Calls   []uint64         `json:"calls"`
	Errors  []uint64         `json:"errors"`
	Self    []float64        `json:"self"`    // own time on the critical path, mean of all examined traces
	Start   []uint64         `json:"start"`   // median, after the start of the trace
	P50     []uint64         `json:"p50"`     // median duration of a call
	P95     []uint64         `json:"p95"`     // likewise
	Slowest []exampleAnswer  `json:"slowest"` // call
	Failed  []*exampleAnswer `json:"failed"`  // the slowest failed call; null: none
	Omitted int              `json:"omitted"` // call paths with less time than all others
}

type exampleAnswer struct {
	Trace string `json:"trace"`
	Span  string `json:"span"`
}

// treeOf returns the response for the traces of a sample that were read.
func treeOf(w *callpath.Waterfall, sample *tracestore.PathProfile) *treeAnswer {
	p, times := w.Answer()
	sample.Reasons.Add(p.Reasons...)
	set := p.Selected
	set.Share = sample.Rest.Share
	if n := uint64(len(sample.Rest.IDs)); set.Traces < n {
		set.Share *= float64(set.Traces) / float64(n)
	}
	out := &treeAnswer{Set: sideOf(&set), Paths: newTreeColumns()}
	out.Set.Exact = sample.Complete() && set.Share == 1
	keep, omitted := mostTime(&p, times)
	out.Paths.Omitted = omitted
	index := map[int]int{-1: -1}
	for i := range p.Paths {
		if keep[i] {
			index[i] = len(out.Paths.Parent)
			out.Paths.add(&p.Paths[i], &times[i], index[p.Paths[i].Parent], &set)
		}
	}
	return out
}

// mostTime returns which call paths to include: the ones with the most time, and their callers.
func mostTime(p *tracestore.PathProfile, times []callpath.PathTimes) (keep []bool, omitted int) {
	order := make([]int, len(times))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(times[b].Time, times[a].Time) })
	keep = make([]bool, len(order))
	for _, i := range order[:min(len(order), maxAnsweredPaths)] {
		for ; i >= 0 && !keep[i]; i = p.Paths[i].Parent {
			keep[i] = true
		}
	}
	for _, k := range keep {
		if !k {
			omitted++
		}
	}
	return keep, omitted
}

func newTreeColumns() treeColumns {
	return treeColumns{Parent: []int{}, Service: []string{}, Name: []string{}, Kind: []string{}, Traces: []uint64{}, Calls: []uint64{},
		Errors: []uint64{}, Self: []float64{}, Start: []uint64{}, P50: []uint64{}, P95: []uint64{}, Slowest: []exampleAnswer{},
		Failed: []*exampleAnswer{}}
}

func (c *treeColumns) add(p *tracestore.CallPath, t *callpath.PathTimes, parent int, set *tracestore.PathSet) {
	n := &p.Selected
	c.Parent, c.Service, c.Name = append(c.Parent, parent), append(c.Service, p.Service), append(c.Name, p.Name)
	c.Kind = append(c.Kind, (&otlpdata.Span{Kind: p.Kind}).KindName())
	c.Traces, c.Calls, c.Errors = append(c.Traces, n.Traces), append(c.Calls, n.Calls), append(c.Errors, n.Errors)
	c.Self = append(c.Self, math.Round(mean(float64(n.SelfTime), set)))
	c.Start, c.P50, c.P95 = append(c.Start, t.Start), append(c.P50, t.P50), append(c.P95, t.P95)
	c.Slowest = append(c.Slowest, exampleOf(&t.Slowest))
	var failed *exampleAnswer
	if !t.Failed.Trace.IsZero() {
		e := exampleOf(&t.Failed)
		failed = &e
	}
	c.Failed = append(c.Failed, failed)
}

func exampleOf(e *callpath.Example) exampleAnswer {
	return exampleAnswer{Trace: hex.EncodeToString(e.Trace[:]), Span: hex.EncodeToString(e.Span[:])}
}
