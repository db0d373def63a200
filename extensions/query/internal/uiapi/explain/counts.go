package explain

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"sort"
	"strconv"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var errSlowest = errors.New("must be a share above 0 and below 1")

// slowestParam parses the share of traces, or spans, to select by longest duration. It is 0 if the
// parameter is absent.
func slowestParam(ctx context.Context, b *core.Backend, v url.Values) (share float64, store tracestore.Aggregator, err error) {
	store, ok := core.StoreAs[tracestore.Aggregator](ctx, b)
	text := v.Get("sel_slowest")
	if text == "" {
		return 0, store, nil
	}
	if !ok {
		return 0, nil, fmt.Errorf("%w count spans by their values", route.ErrUnsupported)
	}
	share, err = strconv.ParseFloat(text, 64)
	if err != nil || !(share > 0 && share < 1) {
		return 0, nil, httpapi.ParamError("sel_slowest", errSlowest)
	}
	return share, store, nil
}

// counts are the numbers of all traces that the query finds. The heatmap of the same query shows
// the same numbers.
type counts struct {
	known   bool
	exact   bool
	traces  float64
	failed  float64
	slowest float64
	reasons tracestore.Reasons // why the threshold of the slowest is not exact
}

// countSlowest counts the traces of the query if the selection is the slowest ones. If it is the
// slowest spans, the counts stay unknown. It limits the selection to the duration that the slowest
// ones reach.
func (r *request) countSlowest(slot *core.Slot) (out counts, err error) {
	switch {
	case r.slowest == 0:
		return out, nil
	case r.durationOf == tracestore.Duration:
		out.reasons, err = r.selectSlowestSpans(slot)
		return out, err
	}
	return r.count(slot)
}

// count counts the traces of the query. For a selection of the slowest traces, it limits the
// selection to the duration that their share reaches.
func (r *request) count(slot *core.Slot) (out counts, err error) {
	if r.aggregator == nil {
		return out, nil
	}
	var durations []uint64
	agg := core.Aggregation{Store: r.aggregator, Window: core.Window{From: r.query.From, To: r.query.To}, Traces: true, Set: r.spans()}
	if r.slowest > 0 {
		agg.Durations = &durations
	}
	found, err := slot.Aggregate(&agg)
	if err != nil {
		return out, err
	}
	share := countedShare(&found)
	out = counts{known: true, exact: share == 1 && found.Complete()}
	out.traces, out.failed = float64(found.Spans)/share, float64(found.Errors)/share
	if r.slowest > 0 {
		least, n := slowestOf(durations, slowestCount(r.slowest, len(durations)))
		out.slowest, out.reasons = float64(n)/share, found.Reasons
		r.selectFrom(least)
	}
	return out, nil
}

// spans returns the set of the spans that the query finds.
func (r *request) spans() storequery.SpanSet {
	if r.set != nil {
		return r.set
	}
	return storequery.Select{Where: r.query.Where}
}

// countedShare returns the share of the spans, or traces, that were counted.
func countedShare(found *tracestore.Aggregate) float64 {
	if found.Share <= 0 {
		return 1
	}
	return found.Share
}

// selectSlowestSpans limits the selection to the duration that the slowest spans reach. It returns
// why the duration is not exact.
func (r *request) selectSlowestSpans(slot *core.Slot) (tracestore.Reasons, error) {
	limit, err := r.findLimit(slot)
	if err != nil {
		return nil, err
	}
	var durations []uint64
	agg := core.Aggregation{Store: r.aggregator, Window: core.Window{From: r.query.From, To: r.query.To}, Where: limit.near,
		Set: r.spans(), Durations: &durations}
	found, err := slot.Aggregate(&agg)
	if err != nil {
		return nil, err
	}
	wanted := slowestCount(r.slowest, len(durations))
	if limit.near != nil {
		wanted = int(math.Ceil(float64(limit.wanted) * countedShare(&found)))
	}
	least, _ := slowestOf(durations, wanted)
	r.selectFrom(max(least, limit.least))
	return found.Reasons, nil
}

// selectFrom limits the selection to durations from a minimum on.
func (r *request) selectFrom(least uint64) {
	r.threshold = least
	r.selection.Where = tracestore.And{r.selection.Where, r.durationIs(tracestore.Ge, least)}
}

func (r *request) durationIs(op tracestore.Op, ns uint64) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: r.durationOf}, Op: op, Value: tracestore.Number(float64(ns))}
}

// slowestLimit says between which durations the minimum duration of the slowest spans is.
type slowestLimit struct {
	near   tracestore.Expr // nil: unknown
	least  uint64          // minimum duration that meets near
	wanted int             // number of spans that meet near and belong to the slowest
}

// findLimit finds the bucket of a histogram with the minimum duration of the slowest spans. Only
// spans in this bucket must then be examined one by one.
func (r *request) findLimit(slot *core.Slot) (limit slowestLimit, _ error) {
	if _, ofTrace := storequery.PlacesOf(r.query.Where); ofTrace || r.set != nil {
		return limit, nil
	}
	agg := core.Aggregation{Store: r.aggregator, Window: core.Window{From: r.query.From, To: r.query.To}, Where: r.query.Where}
	agg.Spec.Groups = tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.Status}}, Limit: 1, All: true}
	found, err := slot.Aggregate(&agg)
	if err != nil || found.Groups == nil || found.Groups.Share < 1 || found.Groups.Other > 0 || !found.Complete() {
		return limit, err
	}
	var all tracestore.Histogram
	for i := range found.Groups.Groups {
		all.Add(&found.Groups.Groups[i].Durations)
	}
	first, counts := all.Counts()
	wanted := slowestCount(r.slowest, int(all.Count())) // among this bucket and those before it
	for i, n := range slices.Backward(counts) {
		if int(n) < wanted {
			wanted -= int(n)
			continue
		}
		limit.least, limit.wanted = leastOf(first+i), wanted
		limit.near = tracestore.And{r.durationIs(tracestore.Ge, limit.least), r.durationIs(tracestore.Lt, leastOf(first+i+1))}
		break
	}
	return limit, nil
}

// leastOf returns the minimum duration of a bucket.
func leastOf(bucket int) uint64 {
	return uint64(sort.Search(math.MaxInt64, func(ns int) bool { return tracestore.BucketOf(uint64(ns)) >= bucket }))
}

// slowestCount returns how many of a number of traces, or spans, are the slowest share.
func slowestCount(share float64, all int) int { return int(math.Ceil(share * float64(all))) }

// slowestOf returns the minimum duration of a wanted number of slowest traces, and how many traces
// reach it: more than wanted only if durations are equal.
func slowestOf(durations []uint64, wanted int) (least uint64, n int) {
	if len(durations) == 0 {
		return 0, 0
	}
	slices.Sort(durations)
	first := max(len(durations)-wanted, 0)
	least = durations[first]
	for first > 0 && durations[first-1] == least {
		first--
	}
	return least, len(durations) - first
}

// apply sets the numbers of a response that follow from the counts of all traces.
func (n *counts) apply(out *answer, r *request, p *tracestore.PathProfile) {
	complete := p.Complete()
	out.Selected.Exact, out.Rest.Exact = complete && p.Selected.Share == 1, complete && p.Rest.Share == 1
	if !n.known || r.baseline != allOthers || out.Selected.Exact && out.Rest.Exact {
		return
	}
	if selected, ok := n.selected(r); ok {
		out.Selected.Estimated, out.Selected.Exact = round(selected), n.exact
	}
	out.Rest.Estimated = round(max(n.traces-float64(out.Selected.Estimated), float64(out.Rest.Traces)))
	out.Rest.Exact = out.Selected.Exact && n.exact
}

// selected returns the number of selected traces, if it follows from these counts.
func (n *counts) selected(r *request) (float64, bool) {
	switch {
	case !n.known:
		return 0, false
	case r.slowest > 0:
		return n.slowest, true
	case r.query.Where == nil && !r.hasSets() && selectsErrors(r.selection):
		return n.failed, true
	case r.all:
		return n.traces, true
	}
	return 0, false
}

// selectsErrors reports whether a selection is all traces with a failed span.
func selectsErrors(s tracestore.Selection) bool {
	all, ok := s.Where.(tracestore.And)
	if !ok || len(all) != 1 {
		return false
	}
	c, ok := all[0].(tracestore.Cond)
	return ok && c.Field == (tracestore.Field{Place: tracestore.Status}) && c.Op == tracestore.Eq &&
		c.Value.Text == otlpdata.StatusName(otlpdata.StatusError)
}
