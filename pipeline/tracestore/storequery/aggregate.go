package storequery

import (
	"fmt"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// AggregateSpans computes an aggregate of the spans of one tenant in batches that match q;
// duplicates count once. It is the reference implementation of [tracestore.Aggregator] and ignores
// the budget. An error means that the aggregation is invalid or that a batch cannot be read.
func AggregateSpans(q tracestore.Query, a tracestore.Aggregation, batches ...*otlpdata.Batch) (tracestore.Aggregate, error) {
	c, err := NewAggregateCounter(q, a)
	if err != nil {
		return tracestore.Aggregate{}, err
	}
	seen := NewDedup()
	for _, b := range batches {
		err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
			if seen.First(s) {
				c.AddSpan(s)
			}
			return nil
		})
		if err != nil {
			return tracestore.Aggregate{}, fmt.Errorf("aggregating spans: %w", err)
		}
	}
	return c.Answer(1), nil
}

// AggregateCounter computes an aggregate of the spans that are added to it. Not safe for concurrent
// use.
type AggregateCounter struct {
	where         tracestore.Expr
	window        window
	heatmap       *HeatmapCounter       // nil if not requested
	facets        *FacetCounter         // nil if not requested
	selection     *tracestore.Selection // nil if there is none
	selected      window
	groups        *GroupCounter   // nil if not requested
	exemplars     *ExemplarPicker // nil if not requested
	scanned       int
	spans, errors uint64
}

// window is a range of start times, both bounds inclusive.
type window struct {
	from, to uint64
	ok       bool
}

func windowOf(q tracestore.Query) (w window) {
	w.from, w.to, w.ok = q.Window()
	return w
}

func (w window) has(start uint64) bool { return w.ok && start >= w.from && start <= w.to }

// NewAggregateCounter returns an AggregateCounter. It returns the error of Aggregation.Check.
func NewAggregateCounter(q tracestore.Query, a tracestore.Aggregation) (*AggregateCounter, error) {
	if err := a.Check(q); err != nil {
		return nil, err
	}
	c := &AggregateCounter{where: q.Where, window: windowOf(q)}
	if a.Heatmap.Step > 0 {
		c.heatmap = NewHeatmapCounter(q, a.Heatmap)
	}
	if a.Facets.Values > 0 {
		c.facets = NewFacetCounter(a.Facets)
		if c.selection = a.Facets.Selection; c.selection != nil {
			c.selected = windowOf(tracestore.Query{From: c.selection.From, To: c.selection.To})
		}
	}
	if a.Groups.Requested() {
		c.groups = NewGroupCounter(q, a.Groups)
	}
	if a.Exemplars > 0 {
		c.exemplars = NewExemplarPicker(a.Exemplars)
	}
	return c, nil
}

// ChargeTo makes the counter charge the memory of facets and groups to a query; see
// FacetCounter.ChargeTo and GroupCounter.ChargeTo.
func (c *AggregateCounter) ChargeTo(m *tracestore.Memory) {
	if c.facets != nil {
		c.facets.ChargeTo(m)
	}
	if c.groups != nil {
		c.groups.ChargeTo(m)
	}
}

// AddSpan examines a span and counts it if it matches the query. It does not retain the span, but
// retains some of its strings until Answer is called.
func (c *AggregateCounter) AddSpan(s tracestore.Span) {
	c.scanned++
	if !c.window.has(s.Start) || !tracestore.Match(c.where, s) {
		return
	}
	c.count(s, true)
}

// count counts a span. If mayBeChosen is false, the span is not in the selection, regardless of the
// selection's window and condition.
func (c *AggregateCounter) count(s tracestore.Span, mayBeChosen bool) {
	failed := s.StatusCode == otlpdata.StatusError
	c.spans++
	c.errors += one(failed)
	duration, _ := s.Duration()
	if c.heatmap != nil {
		c.heatmap.AddSpan(s.Start, duration, failed)
	}
	if c.facets != nil {
		c.facets.AddSpan(s, mayBeChosen && c.selection != nil && c.selected.has(s.Start) && tracestore.Match(c.selection.Where, s))
	}
	if c.groups != nil {
		c.groups.AddSpan(s)
	}
	if c.exemplars != nil && c.exemplars.Wants(s.Start, duration, s.TraceID, s.SpanID) {
		c.exemplars.Offer(tracestore.Exemplar{TraceID: s.TraceID, SpanID: s.SpanID, Start: s.Start, Duration: duration,
			Service: s.Resource.Service, Name: s.Operation(), Failed: failed})
	}
}

// addTrace counts a trace, with a start within the window; see SetAggregation.Traces.
func (c *AggregateCounter) addTrace(s *tracestore.Summary) {
	e := tracestore.Exemplar{TraceID: s.ID, SpanID: s.Root, Start: min(max(s.Start, c.window.from), c.window.to),
		Duration: s.End - min(s.Start, s.End), Service: s.RootService, Name: s.RootName, Failed: s.Errors > 0}
	c.spans++
	c.errors += one(e.Failed)
	if c.heatmap != nil {
		c.heatmap.AddSpan(e.Start, e.Duration, e.Failed)
	}
	if c.groups != nil {
		c.groups.addTrace(s, e.Start)
	}
	if c.exemplars != nil && c.exemplars.Wants(e.Start, e.Duration, e.TraceID, e.SpanID) {
		c.exemplars.Offer(e)
	}
}

// Scanned returns the number of spans that were examined.
func (c *AggregateCounter) Scanned() int { return c.scanned }

// relativeError returns the relative standard error of an estimate of all matching spans. The
// scanned spans are a share of all spans that was chosen span by span; some of them match.
func relativeError(matching uint64, scanned int, share float64) float64 {
	switch {
	case share >= 1:
		return 0
	case matching == 0:
		return 1
	}
	rest := 1 - float64(matching)/float64(scanned)
	return min(math.Sqrt((1-share)*max(rest, 0)/float64(matching)), 1)
}

// Answer returns the aggregate for the examined share of the spans; see Heatmap.Share. It is
// complete if there was enough memory for facets and groups.
func (c *AggregateCounter) Answer(share float64) tracestore.Aggregate {
	out := tracestore.Aggregate{Spans: c.spans, Errors: c.errors, Share: share, Scanned: c.scanned,
		RelativeError: relativeError(c.spans, c.scanned, share)}
	if c.heatmap != nil {
		out.Heatmap = c.heatmap.Answer(share)
	}
	if c.facets != nil {
		out.Facets = c.facets.Answer(share)
		if c.facets.OutOfMemory() {
			out.Reasons.Add(ReasonFacetMemory)
		}
	}
	if c.groups != nil {
		out.Groups = c.groups.Answer(share)
		if c.groups.OutOfMemory() {
			out.Reasons.Add(ReasonGroupMemory)
		}
	}
	if c.exemplars != nil {
		out.Exemplars = c.exemplars.Answer()
	}
	return out
}
