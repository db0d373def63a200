package search

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ tracestore.Aggregator = (*Engine)(nil)

// Aggregate implements tracestore.Aggregator.
//
//	heatmap    from the series of segments and the tallies of memtables, where these tell spans apart as the query does: then rows are read
//	           at the ends of the window only; else from rows, together with the facets
//	facets     from rows: values are counted by their codes, and become texts when a source has been gone through
//	exemplars  from the blocks that are read anyway, else from a few of their own
//
// A block costs nearly the same whether one row of it is asked for or all are. So Budget.Spans counts all rows of the blocks that are
// opened, and not only those that may fit.
func (e *Engine) Aggregate(ctx context.Context, q tracestore.Query, want tracestore.Aggregation) (tracestore.Aggregate, error) {
	if err := errors.Join(want.Check(q), ctx.Err()); err != nil {
		return tracestore.Aggregate{}, err
	}
	a := newAggregator(q, want)
	from, to, ok := q.Window()
	if !ok {
		return a.answer(), nil
	}
	a.window = bounds{from, to}
	a.session = e.begin()
	defer a.lease.release()
	err := a.run(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		a.reason = fmt.Sprintf("time ran out after %d spans were examined; narrow the query or the time range", a.scanned)
		err = nil
	}
	if err != nil {
		return tracestore.Aggregate{}, err
	}
	a.reason = joinReasons(a.reason, a.damage.reason())
	return a.answer(), nil
}

// aggregator is one aggregation under way.
type aggregator struct {
	*session
	query  tracestore.Query
	want   tracestore.Aggregation
	window bounds
	where  *query
	choice *choice // nil: there is no selection
	plans  []*plan // by source
	targets
	heated  bool     // the heatmap is complete
	spent   int      // of the budget, for that
	held    []window // by source, then: where it may have spans that fit
	scanned int
	read    int // rows of blocks that were gone through
	picked  int // blocks that exemplars come from
	reason  string
}

// choice is a selection.
type choice struct {
	where  *query
	starts bounds // from is behind to where no start lies within them
}

// targets are what spans are counted in.
type targets struct {
	heat   *heatTotal // nil: no heatmap is asked for, as the next ones
	facets *facetTotal
	rest   *total // what is counted where neither is asked for
	picks  *storequery.ExemplarPicker
}

// total is how many spans were counted, in which share of all.
type total struct {
	spans, errors uint64
	share         float64
}

func (t *total) add(spans int, failed bool) {
	t.spans += uint64(spans)
	if failed {
		t.errors += uint64(spans)
	}
}

type heatTotal struct {
	total
	*storequery.HeatmapCounter
}

type facetTotal struct {
	total
	*storequery.FacetCounter
	fields facetFields
}

func newAggregator(q tracestore.Query, want tracestore.Aggregation) *aggregator {
	a := &aggregator{query: q, want: want, where: compile(q)}
	a.newHeat()
	if want.Facets.Values > 0 {
		a.facets = &facetTotal{total{share: 1}, storequery.NewFacetCounter(want.Facets), newFacetFields(want.Facets.Fields)}
		a.choice = newChoice(q.Tenant, want.Facets.Selection)
	}
	if a.heat == nil && a.facets == nil {
		a.rest = &total{share: 1}
	}
	if want.Exemplars > 0 {
		a.picks = storequery.NewExemplarPicker(want.Exemplars)
	}
	return a
}

func (a *aggregator) newHeat() {
	if a.want.Heatmap.Step > 0 {
		a.heat = &heatTotal{total{share: 1}, storequery.NewHeatmapCounter(a.query, a.want.Heatmap)}
	}
}

func newChoice(tenant string, s *tracestore.Selection) *choice {
	if s == nil {
		return nil
	}
	q := tracestore.Query{Tenant: tenant, From: s.From, To: s.To, Where: s.Where}
	c := &choice{where: compile(q), starts: bounds{1, 0}}
	if from, to, ok := q.Window(); ok {
		c.starts = bounds{from, to}
	}
	return c
}

// run counts everything. Damage is noted.
func (a *aggregator) run(ctx context.Context) error {
	if a.heat != nil && a.countable() {
		if err := a.heatFromSeries(ctx); err != nil {
			return err
		}
	}
	t := a.targets
	if a.heated {
		t.heat = nil
	}
	if t.heat == nil && t.facets == nil && t.rest == nil {
		return a.pickFew(ctx)
	}
	f, err := a.frame(ctx, a.allTime())
	if err != nil {
		return err
	}
	a.read = 0
	err = a.scan(ctx, f, t)
	share := f.share
	if err != nil { // time may have run out, and what was counted is returned
		share *= float64(max(a.read, 1)) / float64(rowsOf(f.blocks))
	}
	for _, counted := range t.totals() {
		counted.share = share
	}
	return err
}

// totals returns what is counted.
func (t *targets) totals() (all []*total) {
	if t.rest != nil {
		all = append(all, t.rest)
	}
	if t.facets != nil {
		all = append(all, &t.facets.total)
	}
	if t.heat != nil {
		all = append(all, &t.heat.total)
	}
	return all
}

func (a *aggregator) answer() tracestore.Aggregate {
	out := tracestore.Aggregate{Scanned: a.scanned, Complete: a.reason == "", Reason: a.reason}
	if a.facets != nil {
		out.Facets = a.facets.Answer(a.facets.share)
	}
	if a.heat != nil {
		out.Heatmap = a.heat.Answer(a.heat.share)
	}
	if a.picks != nil {
		out.Exemplars = a.picks.Answer()
	}
	all := a.totals()
	first := all[len(all)-1]
	out.Spans, out.Errors, out.Share = first.spans, first.errors, first.share
	return out
}

// allTime returns the window of the query for all sources.
func (a *aggregator) allTime() []window {
	w := make([]window, len(a.sources))
	for i := range w {
		w[i] = window{a.window}
	}
	return w
}

// maxPlans is how many plans are kept for when their source comes again. Each keeps the tables of its source in memory.
const maxPlans = 16

// plan returns the plan for a source, and nil where its tables are damaged.
func (a *aggregator) plan(src int) (*plan, error) {
	if a.plans == nil {
		a.plans = make([]*plan, len(a.sources))
	}
	if a.plans[src] != nil {
		return a.plans[src], nil
	}
	t, err := a.tablesOf(src)
	if err != nil || t == nil {
		return nil, err
	}
	if len(a.plans) > maxPlans {
		clear(a.plans)
	}
	a.plans[src] = newPlan(a.where, a.sources[src], t)
	return a.plans[src], nil
}

// distinct reports whether a source is known to hold no duplicates.
func distinct(src source.Source) bool {
	if d, ok := src.(source.Distinct); ok {
		return d.Distinct()
	}
	_, counted := src.(source.Statistics)
	return counted
}
