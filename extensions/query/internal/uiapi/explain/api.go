package explain

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Routes returns GET /api/ui/v1/explain, which shows how selected traces differ from others, and
// GET /api/ui/v1/tree, which merges traces into one tree.
func Routes(b *core.Backend) []httpapi.Route {
	explain := func(ctx context.Context, v url.Values) (route.Query, error) {
		r, err := parseRequest(ctx, b, v, tracestore.MaxPathTraces)
		if err == nil && !selects(v) {
			err = route.ErrNoSelection
		}
		return r.run, err
	}
	tree := func(ctx context.Context, v url.Values) (route.Query, error) {
		r, err := parseRequest(ctx, b, v, defaultTreeTraces)
		return r.tree, err
	}
	return []httpapi.Route{
		{Pattern: "GET /api/ui/v1/explain", Handler: route.Handler(b, core.OpExplain, explain)},
		{Pattern: "GET /api/ui/v1/tree", Handler: route.Handler(b, core.OpExplain, tree)},
	}
}

// request is a request about the traces of a selection.
type request struct {
	store     tracestore.PathProfiler
	query     tracestore.Query // without tenant and budget
	selection tracestore.Selection
	// set and chosen limit the spans of query and selection, if they depend on the structure of
	// traces. They are nil otherwise.
	set, chosen storequery.SpanSet
	baseline    baseline
	traces      int  // of each side
	all         bool // the selection excludes nothing
	// slowest is the share of traces, or spans, to select by longest duration; 0: none. count sets
	// threshold, the minimum duration of the selected ones.
	slowest    float64
	threshold  uint64
	durationOf tracestore.Place      // Duration or TraceDuration: what the selection bounds
	aggregator tracestore.Aggregator // nil: the store has none
}

// Values of `of`: whether the durations of a selection are durations of spans or traces.
const (
	ofSpans  = "spans"
	ofTraces = "traces"
)

var errOf = errors.New("must be spans or traces")

// maxSetTraces is the maximum number of traces of each side if searches depend on the structure of
// traces. To find them, traces are read one by one.
const maxSetTraces = 500

// parseRequest parses the parameters of a request. traces is the default number of traces.
func parseRequest(ctx context.Context, b *core.Backend, v url.Values, traces int) (r request, err error) {
	var ok bool
	if r.store, ok = core.StoreAs[tracestore.PathProfiler](ctx, b); !ok {
		return r, fmt.Errorf("%w compare the critical paths of traces", route.ErrUnsupported)
	}
	w, err := route.WindowParams(v, b.Now())
	if err != nil {
		return r, err
	}
	r.query.From, r.query.To = w.From, w.To
	if r.query.Where, r.set, err = conditionParam(b.Language(ctx), v, "q"); err != nil {
		return r, err
	}
	if r.slowest, r.aggregator, err = slowestParam(ctx, b, v); err != nil {
		return r, err
	}
	if r.durationOf, err = durationOfParam(v); err != nil {
		return r, err
	}
	if r.selection, r.chosen, err = selectionParams(b.Language(ctx), v, w, r.durationOf); err != nil {
		return r, err
	}
	if r.traces, err = route.CountParam(v, "traces", traces, tracestore.MaxPathTraces); err != nil {
		return r, err
	}
	if r.hasSets() {
		r.traces = min(r.traces, maxSetTraces)
	}
	r.all = !selects(v)
	r.baseline, err = baselineParam(v)
	return r, err
}

// hasSets reports whether the query or the selection depends on the structure of traces.
func (r *request) hasSets() bool { return r.set != nil || r.chosen != nil }

// conditionParam parses a search. If there is no condition that selects the same spans, it returns
// the set.
func conditionParam(l traceql.Language, v url.Values, name string) (tracestore.Expr, storequery.SpanSet, error) {
	set, err := httpapi.SetParam(l, v, name)
	if err != nil {
		return nil, nil, err
	}
	if where, ok := conditionOf(set); ok {
		return where, nil, nil
	}
	return nil, set, nil
}

// conditionOf returns the condition of a set on each single span and on its trace.
func conditionOf(set storequery.SpanSet) (e tracestore.Expr, ok bool) {
	switch set := set.(type) {
	case storequery.Select:
		return set.Where, true
	case storequery.Or:
		left, ok := conditionOf(set.Left)
		if !ok {
			return nil, false
		}
		right, ok := conditionOf(set.Right)
		return tracestore.Or{left, right}, ok
	}
	return nil, false
}

// durationOfParam parses `of`.
func durationOfParam(v url.Values) (tracestore.Place, error) {
	switch v.Get("of") {
	case "", ofTraces:
		return tracestore.TraceDuration, nil
	case ofSpans:
		return tracestore.Duration, nil
	}
	return 0, httpapi.ParamError("of", errOf)
}

// selects reports whether there is a selection.
func selects(v url.Values) bool { return route.HasSelection(v) || v.Get("sel_slowest") != "" }

// selectionParams parses a box of the heatmap, and a further condition or set. Without them,
// everything is selected.
func selectionParams(l traceql.Language, v url.Values, w core.Window, durationOf tracestore.Place) (
	s tracestore.Selection, chosen storequery.SpanSet, err error,
) {
	if s.From, err = route.NanosParam(v, "sel_start", w.From); err != nil {
		return s, nil, err
	}
	if s.To, err = route.NanosParam(v, "sel_end", w.To); err != nil {
		return s, nil, err
	}
	where, chosen, err := conditionParam(l, v, "sel_q")
	if err != nil {
		return s, nil, err
	}
	all := tracestore.And{}
	if where != nil {
		all = append(all, where)
	}
	if all, err = route.BoundDuration(all, v, "sel_min", durationOf, tracestore.Ge); err != nil {
		return s, nil, err
	}
	all, err = route.BoundDuration(all, v, "sel_max", durationOf, tracestore.Le)
	s.Where = all
	return s, chosen, err
}

// run asks the store.
func (r request) run(slot *core.Slot) (any, tracestore.Reasons, error) {
	all, err := r.countSlowest(slot)
	if err != nil {
		return nil, nil, err
	}
	profile, err := r.profile(slot)
	if err != nil {
		return nil, nil, err
	}
	if r.slowest == 0 && r.baseline == allOthers && min(profile.Selected.Share, profile.Rest.Share) < 1 {
		if all, err = r.count(slot); err != nil {
			return nil, nil, err
		}
	}
	profile.Reasons.Add(all.reasons...)
	memory, _ := tracestore.Reserve(slot.Context(), 0) // cannot fail: it reserves 0 bytes
	defer memory.Release()
	c := newCounter(memory, r.selection.Where)
	c.language = slot.Language()
	if profile.Selected.Traces >= minTraces && profile.Rest.Traces >= minTraces {
		reasons, err := countAttributes(slot, &profile, c)
		if err != nil {
			return nil, nil, err
		}
		profile.Reasons.Add(reasons...)
	}
	out := answerOf(&profile, c)
	out.Selected.Least = r.threshold
	all.apply(out, &r, &profile)
	return out, profile.Reasons, nil
}
