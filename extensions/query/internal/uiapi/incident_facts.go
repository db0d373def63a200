package uiapi

import (
	"math"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/spanmetrics"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	// A new version must appear between versionsBefore before the start of an incident and
	// versionsAfter after it, and must not occur in the time versionsKnown before that.
	versionsBefore, versionsAfter = 15 * time.Minute, 5 * time.Minute
	versionsKnown                 = time.Hour
	// usualRoots is the maximum length of the time in which usual root requests are counted.
	usualRoots = time.Hour
	// incidentColumns is the number of parts in which root requests are counted. Only the sum is
	// needed, but stores count many short parts faster than one long part.
	incidentColumns = 60
	maxFactValues   = 20
)

// incidentVersion is a version that appeared with an incident. The numbers are of requests in the
// incident.
type incidentVersion struct {
	From   string        `json:"from"` // the most frequent version before, or ""
	To     string        `json:"to"`
	At     route.Nanos   `json:"at"`
	Of     versionCounts `json:"of"`
	Others versionCounts `json:"others"`
}

type versionCounts struct {
	Calls  uint64 `json:"calls"`
	Errors uint64 `json:"errors"`
}

// rootRequests describes what users see of an incident: the root requests of the services that
// start traces with bad requests.
type rootRequests struct {
	Services []string `json:"services"`
	redAnswer
	Share     float64       `json:"share"`     // of the spans that was examined; numbers are estimates if it is below 1
	Usual     *redAnswer    `json:"usual"`     // in quiet time before the incident; null if there is none
	Operation string        `json:"operation"` // the operation that starts most of these traces
	Of        versionCounts `json:"of"`        // requests of that operation
}

// incidentFacts finds out more about an incident.
type incidentFacts struct {
	*incidentReader
	store  tracestore.Aggregator
	chain  *chain
	window core.Window
}

// failedSpan is the condition for failed spans.
func failedSpan() tracestore.Expr { return is(tracestore.Status, "", "error") }

// requestOf is the condition for the requests of a service, by the same definition as for counts.
func requestOf(s *spanmetrics.ServiceSeries) tracestore.Expr {
	if s.AllSpans {
		return is(tracestore.Service, "", s.Name)
	}
	return tracestore.And{is(tracestore.Service, "", s.Name),
		tracestore.Or{is(tracestore.Kind, "", "server"), is(tracestore.Kind, "", "consumer")}}
}

func (f *incidentFacts) aggregate(w core.Window, where tracestore.Expr, spec tracestore.Aggregation) (tracestore.Aggregate, error) {
	held := f.slot.Held()
	got, err := f.slot.Aggregate(&core.Aggregation{Store: f.store, Window: w, Where: where, Spec: spec})
	if err != nil {
		return got, err
	}
	f.reasons.Add(got.Reasons...)
	return got, f.slot.SetHeld(held)
}

// values counts the values of a field, for all spans and for failed spans.
func (f *incidentFacts) values(w core.Window, where tracestore.Expr, field tracestore.Field) (*tracestore.Facet, error) {
	got, err := f.aggregate(w, where, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: maxFactValues,
		Fields: []tracestore.Field{field}, Selection: &tracestore.Selection{From: w.From, To: w.To, Where: failedSpan()}}})
	if err != nil || got.Facets == nil || len(got.Facets.Facets) == 0 {
		return &tracestore.Facet{}, err
	}
	return &got.Facets.Facets[0], nil
}

// version returns the version of the source that appeared at the start of the incident and did not
// occur in the hour before, or nil.
func (f *incidentFacts) version() (*incidentVersion, error) {
	source := f.chain.source
	start := source.Incident.Start
	if start.IsZero() {
		return nil, nil
	}
	field := tracestore.Field{Place: tracestore.ResourceAttribute, Key: storequery.VersionKey}
	where := is(tracestore.Service, "", source.Name)
	near := core.Window{From: start.Add(-versionsBefore), To: start.Add(versionsAfter)}
	before, err := f.values(core.Window{From: near.From.Add(-versionsKnown), To: near.From.Add(-1)}, where, field)
	if err != nil || before.Spans == 0 {
		return nil, err
	}
	now, err := f.values(near, where, field)
	if err != nil {
		return nil, err
	}
	to := newValue(now, before)
	if to == "" {
		return nil, nil
	}
	out := &incidentVersion{From: mostFrequent(before), To: to}
	ofVersion := is(tracestore.ResourceAttribute, storequery.VersionKey, to)
	first, err := f.aggregate(near, tracestore.And{where, ofVersion},
		tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Minute}})
	if err != nil || first.Heatmap == nil || len(first.Heatmap.Cells) == 0 {
		return nil, err
	}
	out.At = max(route.Nanos(first.Heatmap.Cells[0].Start), route.NanosOf(near.From))
	all, err := f.values(f.window, requestOf(source), field)
	for _, v := range all.Values {
		if v.Text == to {
			out.Of = versionCounts{v.Count, v.Selected}
		}
	}
	out.Others = versionCounts{all.Spans - min(all.Spans, out.Of.Calls), all.Selected - min(all.Selected, out.Of.Errors)}
	return out, err
}

// newValue returns the value with the most errors that does not occur in before, or "".
func newValue(now, before *tracestore.Facet) (text string) {
	known := make(map[string]bool)
	for _, v := range before.Values {
		known[v.Text] = true
	}
	var most tracestore.FacetValue
	for _, v := range now.Values {
		if !known[v.Text] && (most.Text == "" || v.Selected > most.Selected || v.Selected == most.Selected && v.Count > most.Count) {
			most = v
		}
	}
	return most.Text
}

func mostFrequent(f *tracestore.Facet) string {
	var most tracestore.FacetValue
	for _, v := range f.Values {
		if v.Count > most.Count {
			most = v
		}
	}
	return most.Text
}

// roots counts the root requests in the incident and in quiet time before. It returns nil if no
// trace with a bad request has a root.
func (f *incidentFacts) roots() (*rootRequests, error) {
	out := &rootRequests{}
	for _, r := range f.chain.roots {
		if len(out.Services) < maxRootServices && !slices.Contains(out.Services, r.service) {
			out.Services = append(out.Services, r.service)
		}
	}
	if len(out.Services) == 0 {
		return nil, nil
	}
	where := rootSpans(out.Services)
	now, share, err := f.red(f.window, where)
	if err != nil {
		return nil, err
	}
	out.redAnswer, out.Share = *now, share
	most := f.chain.roots[0]
	of, _, err := f.red(f.window, tracestore.And{rootSpans([]string{most.service}), is(tracestore.Name, "", most.name)})
	if err != nil {
		return nil, err
	}
	out.Operation, out.Of = most.name, versionCounts{of.Calls, of.Errors}
	names := []string{f.chain.source.Name}
	for _, s := range f.chain.reached {
		names = append(names, s.Name)
	}
	held := f.slot.Held()
	times, reasons, err := spanmetrics.QuietTimes(f.slot, names, f.window.From, f.slot.Limits().Baseline)
	if err != nil {
		return nil, err
	}
	f.reasons.Add(reasons...)
	if err := f.slot.SetHeld(held); err != nil || len(times) == 0 {
		return out, err
	}
	w := times[len(times)-1] // the latest
	if from := w.To.Add(1 - usualRoots); from.After(w.From) {
		w.From = from
	}
	out.Usual, _, err = f.red(w, where)
	return out, err
}

// rootSpans is the condition for the root spans of some services.
func rootSpans(services []string) tracestore.Expr {
	var of tracestore.Or
	for _, s := range services {
		of = append(of, is(tracestore.Service, "", s))
	}
	hasParent := tracestore.Cond{Field: tracestore.Field{Place: tracestore.ParentID}, Op: tracestore.Exists}
	return tracestore.And{of, tracestore.Not{Expr: hasParent}}
}

// red counts spans in a window, and returns the examined share.
func (f *incidentFacts) red(w core.Window, where tracestore.Expr) (_ *redAnswer, share float64, _ error) {
	step := divideUp(divideUp(w.To.Sub(w.From), incidentColumns), time.Minute) * time.Minute
	got, err := f.aggregate(w, where, tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: max(step, time.Minute)}})
	if err != nil || got.Heatmap == nil {
		return &redAnswer{}, 1, err
	}
	var durations tracestore.Histogram
	red := spanmetrics.Red{P50: math.NaN(), P95: math.NaN(), P99: math.NaN()}
	for _, c := range got.Heatmap.Cells {
		red.Errors += c.Errors
		durations.AddBucket(c.Bucket, c.Count)
	}
	share = got.Heatmap.Share
	if durations.Count() > 0 {
		red.P50, red.P95, red.P99 = durations.Quantile(0.5), durations.Quantile(0.95), durations.Quantile(0.99)
	}
	red.Calls, red.Errors = route.Estimate(durations.Count(), share), route.Estimate(red.Errors, share)
	answer := redOf(&red)
	return &answer, share, nil
}
