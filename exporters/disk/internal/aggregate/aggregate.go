package aggregate

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Aggregator counts spans. It is safe for concurrent use.
type Aggregator struct {
	store    *scan.Store
	counts   countCache
	partRows int // minPartRows, or less in tests
	// rangeBlocks is the constant of the same name, or less in tests.
	rangeBlocks int
}

var (
	_ tracestore.Aggregator = (*Aggregator)(nil)
	_ tracestore.Metrics    = (*Aggregator)(nil)
)

// New returns an Aggregator for a store.
func New(s *scan.Store) *Aggregator {
	return &Aggregator{store: s, counts: newCountCache(s.Options.Memory / 2), partRows: minPartRows, rangeBlocks: rangeBlocks}
}

// Aggregate implements tracestore.Aggregator.
//
//   - The heatmap comes from the statistics of segments and memtables if these distinguish spans as
//     the query does; then rows are read at both ends of the window only. Otherwise it comes from
//     rows, together with the facets.
//   - Facets come from rows. Values are counted by their codes in rows (the numbers of
//     words, for example), which become texts at the end of each source.
//   - Groups by service, name and kind also come from statistics if nothing else is requested.
//     Otherwise they come from rows, in the same way as facets.
//   - Counts of facets and groups in segments are cached, and exemplars if nothing else is
//     requested; see countCache.
//   - Exemplars come from the blocks that are read anyway, or else from a few blocks of their own.
//
// Reading one row of a block costs almost as much as reading all of them. So Budget.Spans limits
// the number of rows in opened blocks, not the number of rows that may match.
func (c *Aggregator) Aggregate(ctx context.Context, q tracestore.Query, want tracestore.Aggregation) (tracestore.Aggregate, error) {
	if err := errors.Join(want.Check(q), ctx.Err()); err != nil {
		return tracestore.Aggregate{}, err
	}
	q.Where, want = tracestore.WithContext(ctx, q.Where), want.WithContext(ctx)
	a := newAggregation(q, want)
	a.partRows, a.rangeBlocks = c.partRows, c.rangeBlocks
	from, to, ok := q.Window()
	if !ok {
		a.targets.examined(1)
		return a.answer(), nil
	}
	a.window = scan.Range{From: from, To: to}
	a.session = c.store.BeginQuery(ctx)
	a.chargeMemory()
	defer a.session.Release()
	a.counts = c.counts.begin(a)
	err := a.run(ctx)
	if err == nil {
		err = ctx.Err() // conditions may be wrong, see tracestore.WithContext
	}
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded):
		a.stopped(tracestore.ReasonTime,
			fmt.Sprintf("deadline exceeded after examining %d spans; narrow the query or the time range", a.scanned))
	case tracestore.IsOutOfMemory(err) && (a.heatmapDone || a.scanned > 0):
		a.stopped(tracestore.ReasonLimit, fmt.Sprintf("stopped after examining %d spans: %s", a.scanned, err))
	default:
		return tracestore.Aggregate{}, err
	}
	if f := a.targets.facets; f != nil && f.counter.OutOfMemory() {
		a.reasons.Add(storequery.ReasonFacetMemory)
	}
	if g := a.targets.groups; g != nil && g.counter.OutOfMemory() {
		a.reasons.Add(storequery.ReasonGroupMemory)
	}
	a.reasons.Add(a.session.DamageReasons()...)
	return a.answer(), nil
}

// aggregation is a running call of Aggregate.
type aggregation struct {
	session      *scan.Session
	query        tracestore.Query
	want         tracestore.Aggregation
	window       scan.Range
	where        *scan.Query
	selection    *selection   // nil: none
	plans        []*scan.Plan // by source
	planMemory   int64        // bytes reserved for plans
	targets      targets
	heatmapDone  bool          // heatFromSeries has made the heatmap
	spent        int           // the part of the budget that it used
	matchWindows []scan.Window // by source, after heatFromSeries: windows that may have matching spans
	scanned      int
	rowsRead     int                       // number of rows in blocks that were read
	partRows     int                       // see scanParts
	counts       *countUse                 // nil: not used
	rangeBlocks  int                       // see rangeEnd
	idFields     map[tracestore.Field]bool // fields that have ids in a range that was counted
	pickedBlocks int                       // number of blocks with exemplars
	reasons      tracestore.Reasons
}

// selection is a compiled tracestore.Selection.
type selection struct {
	where  *scan.Query
	starts scan.Range // From is greater than To if no start lies within the window
}

// targets are the counters that a scan fills.
type targets struct {
	heat   *heatTotal // nil: no heatmap; the same for the other fields
	facets *facetTotal
	groups *groupTotal
	rest   *total // counts if there are neither a heatmap nor facets nor groups
	picks  *storequery.ExemplarPicker
}

// total is the number of spans that were counted, and their share of all spans.
type total struct {
	spans, errors uint64
	share         float64 // 0 until it is known
	spread        spread  // over the examined blocks
}

func (t *total) add(spans int, failed bool) {
	t.spans += uint64(spans)
	if failed {
		t.errors += uint64(spans)
	}
}

type heatTotal struct {
	total   total
	counter *storequery.HeatmapCounter
}

type facetTotal struct {
	total    total
	counter  *storequery.FacetCounter
	needs    facetNeeds
	fields   []*facetField
	index    map[*storequery.FieldCounter]*facetField
	numbers  int                // in the tables of all fields
	reserved int                // numbers for which memory is reserved
	memory   *tracestore.Memory // of the query
	// ids are fields whose values are not counted, because a range before this one has only ids.
	ids map[tracestore.Field]bool
}

func newAggregation(q tracestore.Query, want tracestore.Aggregation) *aggregation {
	a := &aggregation{query: q, want: want, where: scan.Compile(q), idFields: make(map[tracestore.Field]bool)}
	a.newHeat()
	if want.Facets.Values > 0 {
		a.targets.facets = newFacetTotal(want.Facets)
		a.selection = newSelection(q.Tenant, want.Facets.Selection)
	}
	a.newGroups()
	if a.targets.heat == nil && a.targets.facets == nil && a.targets.groups == nil {
		a.targets.rest = &total{}
	}
	if want.Exemplars > 0 {
		a.targets.picks = storequery.NewExemplarPicker(want.Exemplars)
	}
	return a
}

func (a *aggregation) newHeat() {
	if a.want.Heatmap.Step > 0 {
		a.targets.heat = &heatTotal{total{}, storequery.NewHeatmapCounter(a.query, a.want.Heatmap)}
	}
}

func (a *aggregation) newGroups() {
	if a.want.Groups.Requested() {
		if old := a.targets.groups; old != nil {
			old.counter.Release()
		}
		a.targets.groups = &groupTotal{total{}, storequery.NewGroupCounter(a.query, a.want.Groups), &a.want.Groups}
		if a.session != nil { // begins again
			a.chargeMemory()
		}
	}
}

func newSelection(tenant string, s *tracestore.Selection) *selection {
	if s == nil {
		return nil
	}
	q := tracestore.Query{Tenant: tenant, From: s.From, To: s.To, Where: s.Where}
	c := &selection{where: scan.Compile(q), starts: scan.Range{From: 1, To: 0}}
	if from, to, ok := q.Window(); ok {
		c.starts = scan.Range{From: from, To: to}
	}
	return c
}

// chargeMemory makes the counters charge their memory to the session.
func (a *aggregation) chargeMemory() {
	if f := a.targets.facets; f != nil {
		f.memory = a.session.Memory
		f.counter.ChargeTo(f.memory)
	}
	if a.targets.groups != nil {
		a.targets.groups.counter.ChargeTo(a.session.Memory)
	}
}

// run counts everything. Damage is recorded.
func (a *aggregation) run(ctx context.Context) error {
	if a.targets.heat != nil && a.canUseSeries() {
		if err := a.heatFromSeries(ctx); err != nil {
			return err
		}
	}
	if a.canGroupSeries() {
		if done, err := a.groupSeries(ctx); done || err != nil {
			return err
		}
	}
	t := a.targets
	if a.heatmapDone {
		t.heat = nil
	}
	if t.heat == nil && t.facets == nil && t.groups == nil && t.rest == nil {
		return a.pickWithoutScan(ctx)
	}
	f, err := a.sampleBlocks(ctx, a.wholeWindow())
	if err != nil {
		return err
	}
	if f.rowStep > 1 || f.blockStep == 0 {
		a.counts = nil
	}
	if a.counts != nil {
		if err := a.longRangesFirst(f); err != nil {
			return err
		}
	}
	a.rowsRead = 0
	err = a.scanParts(ctx, f, t)
	if err == nil && t.facets != nil && t.facets.counter.Incomplete() { // rare: begin again, without ranges
		a.counts.forget()
		a.counts = nil
		t.facets = newFacetTotal(a.want.Facets)
		a.targets.facets = t.facets
		a.chargeMemory()
		a.newGroups()
		t.groups = a.targets.groups
		a.rowsRead = 0
		err = a.scanParts(ctx, f, t)
	}
	share := f.share
	if err != nil { // after a timeout the partial counts are returned
		share *= float64(max(a.rowsRead, 1)) / float64(countRows(f.blocks))
	}
	t.examined(share)
	for _, counted := range t.totals() {
		counted.spread.merge(f.ruledOut)
	}
	return err
}

// scanRest counts the rows that statistics leave out, and sets the share.
func (a *aggregation) scanRest(ctx context.Context, f *blockSample, to targets) error {
	a.rowsRead = 0
	err := a.scan(ctx, f, to)
	share := 1.0
	if err != nil {
		share = a.shareWithout(countRows(f.blocks) - a.rowsRead)
	}
	to.examined(share)
	return err
}

// stopped records why some spans were not examined. Totals without a share have counted nothing.
func (a *aggregation) stopped(kind tracestore.ReasonKind, text string) {
	a.reasons = tracestore.Because(kind, text)
	for _, t := range a.targets.totals() {
		if t.share == 0 {
			t.share = a.shareWithout(math.MaxInt)
		}
	}
}

// shareWithout returns the examined share of the spans in the window, given the number of rows that
// were not examined. It is above 0, because counts are divided by it.
func (a *aggregation) shareWithout(rows int) float64 {
	const least = 0.5 // of a row
	f, err := a.blocksIn(a.wholeWindow())
	if err != nil {
		return least / float64(max(a.scanned, 1))
	}
	all := countRows(f.blocks)
	return max(float64(all-min(rows, all)), least) / float64(max(all, 1))
}

// examined sets the share of all totals.
func (t *targets) examined(share float64) {
	for _, counted := range t.totals() {
		counted.share = share
	}
}

// totals returns the totals in use.
func (t *targets) totals() (all []*total) {
	if t.rest != nil {
		all = append(all, t.rest)
	}
	if t.groups != nil {
		all = append(all, &t.groups.total)
	}
	if t.facets != nil {
		all = append(all, &t.facets.total)
	}
	if t.heat != nil {
		all = append(all, &t.heat.total)
	}
	return all
}

func (a *aggregation) answer() tracestore.Aggregate {
	out := tracestore.Aggregate{Scanned: a.scanned, Reasons: a.reasons}
	if a.targets.facets != nil {
		out.Facets = a.targets.facets.counter.Answer(a.targets.facets.total.share)
	}
	if a.targets.groups != nil {
		out.Groups = a.targets.groups.counter.Answer(a.targets.groups.total.share)
	}
	if a.targets.heat != nil {
		out.Heatmap = a.targets.heat.counter.Answer(a.targets.heat.total.share)
	}
	if a.targets.picks != nil {
		out.Exemplars = a.targets.picks.Answer()
	}
	all := a.targets.totals()
	first := all[len(all)-1]
	out.Spans, out.Errors, out.Share = first.spans, first.errors, first.share
	out.RelativeError = first.spread.relativeError(first.share)
	return out
}

// wholeWindow returns the window of the query for each source.
func (a *aggregation) wholeWindow() []scan.Window {
	w := make([]scan.Window, len(a.session.Sources))
	for i := range w {
		w[i] = scan.Window{a.window}
	}
	return w
}

// maxPlans is the maximum number of plans that are kept in case their source is reread. Each keeps
// the vocabulary of its source in memory.
const maxPlans = 16

// plan returns the plan for a source, or nil if its vocabulary is damaged.
func (a *aggregation) plan(src int) (*scan.Plan, error) {
	if a.plans == nil {
		a.plans = make([]*scan.Plan, len(a.session.Sources))
	}
	if a.plans[src] != nil {
		return a.plans[src], nil
	}
	t, err := a.session.Tables(src)
	if err != nil || t == nil {
		return nil, err
	}
	if len(a.plans) > maxPlans {
		clear(a.plans)
		_ = a.session.Memory.Grow(-a.planMemory) // cannot fail
		a.planMemory = 0
	}
	if err := a.session.Memory.Grow(scan.PlanMemory(t)); err != nil {
		return nil, err
	}
	a.planMemory += scan.PlanMemory(t)
	a.plans[src] = scan.NewPlan(a.where, a.session.Sources[src], t)
	return a.plans[src], nil
}
