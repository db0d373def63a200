package uiapi

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// minKeySpans is the minimum number of spans in the sample with a new attribute key.
	minKeySpans = 2
	// maxNewKeys is the maximum number of new attribute keys of a service that are checked.
	maxNewKeys = 10
	// maxNewVersions is the same for versions.
	maxNewVersions = 5
	// instanceWindow is the length of the times at the end of the range, and before it, in which
	// instances are counted.
	instanceWindow = 10 * time.Minute
	// maxInstanceChecks is the maximum number of services whose instances are counted. Each count
	// examines at most maxInstanceSpans spans.
	maxInstanceChecks, maxInstanceSpans = 20, 50_000
	// minInstanceSpans is the minimum number of spans per instance if only a share of the spans is
	// counted. With fewer, the count may miss instances.
	minInstanceSpans = 20
	// serviceSteps is the number of steps for locating the first spans of new services. Steps are
	// whole minutes.
	serviceSteps = 60
	// changePrecision is the precision to which the first span with a new value is located.
	changePrecision = time.Second
)

func is(p tracestore.Place, key, value string) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Op: tracestore.Eq, Value: tracestore.Text(value)}
}

// addServices adds services that had no spans before, at the step of the time range with their
// first spans.
func (f *changeFinder) addServices(services []string) error {
	if len(services) == 0 {
		return nil
	}
	f.cut = f.cut || len(services) > maxNewServices
	w := f.periods.current()
	got, err := f.metrics.Metrics(f.slot.Context(), f.slot.Tenant(), tracestore.MetricsQuery{
		Services: services[:min(len(services), maxNewServices)], From: w.From, To: w.To, Step: w.To.Sub(w.From) / serviceSteps})
	if err != nil {
		return err
	}
	for i := range got.Series {
		s := &got.Series[i]
		at := max(route.Nanos(s.Points[0].Start), route.NanosOf(w.From)) // the first step may begin earlier
		f.found = append(f.found, change{At: at, Service: s.Service, Kind: newService})
	}
	return nil
}

// compare adds the changes of a service that had spans before.
func (f *changeFinder) compare(service string, s *serviceSample) error {
	for i, version := range appeared(s.versions) {
		if i >= maxNewVersions {
			f.cut = true
			break
		}
		if err := f.addVersion(service, version, s.versions[version].first); err != nil {
			return err
		}
	}
	if err := f.addInstances(service, s); err != nil {
		return err
	}
	checked := 0
	for _, key := range appeared(s.keys) {
		if s.keys[key].now < minKeySpans {
			continue
		}
		if checked++; checked > maxNewKeys {
			f.cut = true
			break
		}
		if err := f.addKey(service, key, s.keys[key].first); err != nil {
			return err
		}
	}
	return nil
}

// addVersion adds a version that did not occur in the usual time.
func (f *changeFinder) addVersion(service, version string, seen uint64) error {
	where := tracestore.And{is(tracestore.Service, "", service), is(tracestore.ResourceAttribute, versionKey, version)}
	at, isNew, err := f.newSince(where, seen)
	if err != nil || !isNew {
		return err
	}
	from, err := f.versionBefore(service, at)
	if err == nil {
		f.found = append(f.found, change{At: at, Service: service, Kind: newVersion, From: from, To: version})
	}
	return err
}

// addKey adds an attribute key that did not occur in the usual time.
func (f *changeFinder) addKey(service, key string, seen uint64) error {
	where := tracestore.And{is(tracestore.Service, "", service),
		tracestore.Cond{Field: tracestore.Field{Place: tracestore.SpanAttribute, Key: key}, Op: tracestore.Exists}}
	at, isNew, err := f.newSince(where, seen)
	if err == nil && isNew {
		f.found = append(f.found, change{At: at, Service: service, Kind: newAttribute, To: key})
	}
	return err
}

// newSince reports whether no span met a condition in the times before, and the approximate start
// of the first span that does. seen is the start of one such span.
func (f *changeFinder) newSince(where tracestore.Expr, seen uint64) (at route.Nanos, isNew bool, err error) {
	if f.done() {
		return 0, false, nil
	}
	for _, w := range slices.Backward(f.periods.before) {
		if before, err := f.probe(where, w); err != nil || before {
			return 0, false, err
		}
	}
	at, err = f.firstSpan(where, seen)
	return at, true, err
}

// firstSpan returns the approximate start of the first span in the range that meets a condition.
// seen is at or after it.
func (f *changeFinder) firstSpan(where tracestore.Expr, seen uint64) (route.Nanos, error) {
	low, high := uint64(f.periods.start.UnixNano()), seen // the first span starts from low to high
	for high-min(low, high) > uint64(changePrecision) && !f.done() {
		middle := low + (high-low)/2
		found, err := f.probe(where, core.Window{From: f.periods.start, To: time.Unix(0, int64(middle))})
		if err != nil {
			return 0, err
		}
		if found {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return route.Nanos(high), nil
}

// probe reports whether a span meets a condition.
func (f *changeFinder) probe(where tracestore.Expr, w core.Window) (bool, error) {
	_, found, err := f.newest(where, w)
	return found, err
}

// newest returns the start of the newest span that meets a condition.
func (f *changeFinder) newest(where tracestore.Expr, w core.Window) (start uint64, found bool, _ error) {
	f.probes++
	q := tracestore.Query{Tenant: f.slot.Tenant(), From: w.From, To: w.To, Where: where, Limit: 1, Budget: f.slot.Budget()}
	results, err := f.slot.Store().Find(f.slot.Context(), q, tracestore.WantIDs)
	if err != nil {
		return 0, false, err
	}
	for r, err := range results.All {
		return r.Start, true, err
	}
	f.reasons.Add(results.Outcome().Reasons...)
	return 0, false, nil
}

// versionBefore returns the version of the newest span of a service before a time, or "".
func (f *changeFinder) versionBefore(service string, at route.Nanos) (version string, _ error) {
	f.probes++
	q := tracestore.Query{Tenant: f.slot.Tenant(), From: f.periods.earlier(usualTime).From, Limit: 1,
		To: time.Unix(0, int64(at)-int64(changePrecision)), Where: is(tracestore.Service, "", service), Budget: f.slot.Budget()}
	newest := uint64(0)
	_, err := f.slot.Find(q, nil, func(_ otlpdata.TraceID, spans *otlpdata.Batch) error {
		return tracestore.WalkSpans(spans, func(s tracestore.Span) error {
			if s.Resource.Service == service && s.Start >= newest && !time.Unix(0, int64(s.Start)).After(q.To) {
				v, _ := otlpdata.Get(s.Resource.Attributes, versionKey)
				newest, version = s.Start, strings.Clone(v.AsString())
			}
			return nil
		})
	})
	return version, err
}

// addInstances adds a change in the number of instances at the end of the range, if the sample
// suggests one.
func (f *changeFinder) addInstances(service string, s *serviceSample) error {
	added := appeared(s.instances)
	removed := gone(s.instances, uint64(f.periods.end.Add(-instanceWindow).UnixNano()))
	store, ok := core.SlotAs[tracestore.Aggregator](f.slot)
	if !ok || len(added) == 0 && removed == "" || f.done() {
		return nil
	}
	if f.counted++; f.counted > maxInstanceChecks {
		f.cut = true
		return nil
	}
	before, err := f.instances(store, service, f.periods.earlier(min(instanceWindow, f.periods.end.Sub(f.periods.start))))
	if err != nil {
		return err
	}
	now, err := f.instances(store, service, f.periods.current())
	if err != nil || before == 0 || now == 0 || before == now {
		return err
	}
	at := route.NanosOf(f.periods.start)
	switch {
	case now > before && len(added) > 0:
		first := slices.MinFunc(added, func(a, b string) int { return cmp.Compare(s.instances[a].first, s.instances[b].first) })
		at, err = f.firstSpan(ofInstance(service, first), s.instances[first].first)
	case now < before && removed != "":
		at, err = f.lastSpan(ofInstance(service, removed))
	}
	if err == nil {
		f.found = append(f.found, change{At: at, Service: service, Kind: newInstances, From: strconv.Itoa(before), To: strconv.Itoa(now)})
	}
	return err
}

// ofInstance is the condition for spans of an instance.
func ofInstance(service, instance string) tracestore.Expr {
	var anyKey tracestore.Or
	for _, key := range instanceKeys() {
		anyKey = append(anyKey, is(tracestore.ResourceAttribute, key, instance))
	}
	return tracestore.And{is(tracestore.Service, "", service), anyKey}
}

// lastSpan returns the start of the last span in the range that meets a condition, or the start of
// the range if there is none.
func (f *changeFinder) lastSpan(where tracestore.Expr) (route.Nanos, error) {
	start, found, err := f.newest(where, f.periods.current())
	if !found {
		return route.NanosOf(f.periods.start), err
	}
	return route.Nanos(start), err
}

// instances returns the number of instances at the end of a period, or 0 if it is unknown.
func (f *changeFinder) instances(store tracestore.Aggregator, service string, w core.Window) (int, error) {
	f.probes++
	if from := w.To.Add(-instanceWindow); from.After(w.From) {
		w.From = from
	}
	held := f.slot.Held()
	a := core.Aggregation{Store: store, Window: w, Where: is(tracestore.Service, "", service), MaxSpans: maxInstanceSpans}
	a.Spec.Facets.Values = 1
	for _, key := range instanceKeys() {
		a.Spec.Facets.Fields = append(a.Spec.Facets.Fields, tracestore.Field{Place: tracestore.ResourceAttribute, Key: key})
	}
	got, err := f.slot.Aggregate(&a)
	if err != nil {
		return 0, err
	}
	f.reasons.Add(got.Reasons...)
	if err := f.slot.SetHeld(held); err != nil || got.Facets == nil || !got.Complete() {
		return 0, err
	}
	for i := range got.Facets.Facets {
		facet := &got.Facets.Facets[i]
		if facet.Spans == 0 {
			continue
		}
		if got.Facets.Share < 1 && facet.Spans < minInstanceSpans*uint64(facet.Distinct) {
			return 0, nil
		}
		return facet.Distinct, nil
	}
	return 0, nil
}
