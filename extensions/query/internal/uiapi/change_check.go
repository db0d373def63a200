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
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
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
	maxInstanceChecks, maxInstanceSpans = 100, 500_000
	// minInstanceSpans is the minimum number of spans per instance if only a share of the spans is
	// counted. With fewer, the count may miss instances.
	minInstanceSpans = 20
	// unseenTraces is the number of traces that one check for earlier spans reads.
	unseenTraces = 12
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

// candidate is a version or an attribute key that the sample has only in the range.
type candidate struct {
	kind  changeKind
	value string
	where tracestore.Expr // spans with the value
	seen  uint64          // start of the first span with the value in the sample
}

// candidates returns values that are new in the range and that at least `least` spans have. It
// returns at most `most` values.
func (f *changeFinder) candidates(
	kind changeKind, seen map[string]*sighting, least, most int, where func(value string) tracestore.Expr,
) (out []candidate) {
	for _, value := range appeared(seen) {
		switch {
		case seen[value].now < least:
		case len(out) == most:
			f.cut = true
			return out
		default:
			out = append(out, candidate{kind, value, where(value), seen[value].first})
		}
	}
	return out
}

// compare adds the new versions and attribute keys of a service that had spans before: values that
// no span has in the times before the range.
func (f *changeFinder) compare(service string, s *serviceSample) error {
	versions := f.candidates(newVersion, s.versions, 1, maxNewVersions, func(version string) tracestore.Expr {
		return is(tracestore.ResourceAttribute, storequery.VersionKey, version)
	})
	keys := f.candidates(newAttribute, s.keys, minKeySpans, maxNewKeys, func(key string) tracestore.Expr {
		return tracestore.Cond{Field: tracestore.Field{Place: tracestore.SpanAttribute, Key: key}, Op: tracestore.Exists}
	})
	fresh := slices.Concat(versions, keys)
	if !f.sample.all {
		var err error
		if fresh, err = f.unseen(service, fresh); err != nil {
			return err
		}
	}
	for _, c := range fresh {
		if err := f.add(service, c); err != nil {
			return err
		}
	}
	return nil
}

// add adds a change at the approximate start of the first span with the new value.
func (f *changeFinder) add(service string, c candidate) error {
	at, err := f.firstSpan(tracestore.And{is(tracestore.Service, "", service), c.where}, c.seen)
	if err != nil {
		return err
	}
	found := change{At: at, Service: service, Kind: c.kind, To: c.value}
	if c.kind == newVersion {
		if found.From, err = f.versionBefore(service, at); err != nil {
			return err
		}
	}
	f.found = append(f.found, found)
	return nil
}

// unseen returns the candidates that no span of a service has in the times before. It searches for
// traces with any candidate and removes the candidates that they contain, until it finds no more.
func (f *changeFinder) unseen(service string, left []candidate) ([]candidate, error) {
	for _, w := range slices.Backward(f.periods.before) {
		for len(left) > 0 {
			if f.done() {
				return nil, nil
			}
			found, rest, err := f.without(service, w, left)
			if err != nil {
				return nil, err
			}
			if !found {
				break
			}
			if len(rest) == len(left) { // the span that was found cannot be read
				f.cut = true
				return nil, nil
			}
			left = rest
		}
	}
	return left, nil
}

// without searches a window for traces with any candidate. It reports whether there are any, and
// returns the candidates that their spans do not have.
func (f *changeFinder) without(service string, w core.Window, left []candidate) (found bool, rest []candidate, _ error) {
	f.probes++
	var anyOf tracestore.Or
	for _, c := range left {
		anyOf = append(anyOf, c.where)
	}
	q := tracestore.Query{Tenant: f.slot.Tenant(), From: w.From, To: w.To, Limit: unseenTraces, Budget: f.slot.Budget(),
		Where: tracestore.And{is(tracestore.Service, "", service), anyOf}}
	from, to, _ := q.Window()
	rest = slices.Clone(left)
	outcome, err := f.slot.Find(q, nil, func(_ otlpdata.TraceID, spans *otlpdata.Batch) error {
		found = true
		return tracestore.WalkSpans(spans, func(s tracestore.Span) error {
			if s.Resource.Service == service && from <= s.Start && s.Start <= to {
				rest = slices.DeleteFunc(rest, func(c candidate) bool { return tracestore.Match(c.where, s) })
			}
			return nil
		})
	})
	f.reasons.Add(outcome.Reasons...)
	return found, rest, err
}

// firstSpan returns the approximate start of the first span in the range that meets a condition.
// seen is at or after it; if all values are known, seen is the start.
func (f *changeFinder) firstSpan(where tracestore.Expr, seen uint64) (route.Nanos, error) {
	low, high := uint64(f.periods.start.UnixNano()), seen // the first span starts from low to high
	for !f.sample.all && high-min(low, high) > uint64(changePrecision) && !f.done() {
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
				v, _ := otlpdata.Get(s.Resource.Attributes, storequery.VersionKey)
				newest, version = s.Start, strings.Clone(v.AsString())
			}
			return nil
		})
	})
	return version, err
}

// addInstances adds the changes of the numbers of instances at the end of the range. The sample
// says which of the services, those with the most calls first, may have one.
func (f *changeFinder) addInstances(services []string) error {
	services = slices.DeleteFunc(services, func(name string) bool {
		s := f.sample.services[name]
		return s == nil || len(appeared(s.instances)) == 0 && f.removed(s) == ""
	})
	if len(services) == 0 || f.done() {
		return nil
	}
	var counts [2]map[string]int // at each of changePeriods.ends
	for i, w := range f.periods.ends() {
		if f.sample.all {
			counts[i] = f.sample.instancesAt(i)
			continue
		}
		store, ok := core.SlotAs[tracestore.Aggregator](f.slot)
		if !ok {
			return nil
		}
		f.cut = f.cut || len(services) > maxInstanceChecks
		services = services[:min(len(services), maxInstanceChecks)]
		var err error
		if counts[i], err = f.instances(store, services, w); err != nil {
			return err
		}
	}
	for _, service := range services {
		if err := f.addInstancesOf(service, counts[0][service], counts[1][service]); err != nil {
			return err
		}
	}
	return nil
}

// removed returns an instance that the sample does not have at the end of the range, or "".
func (f *changeFinder) removed(s *serviceSample) string {
	return gone(s.instances, uint64(f.periods.end.Add(-instanceWindow).UnixNano()))
}

// addInstancesOf adds a change of the number of instances of a service. 0 means unknown.
func (f *changeFinder) addInstancesOf(service string, before, now int) error {
	if before == 0 || now == 0 || before == now {
		return nil
	}
	var err error
	s, at := f.sample.services[service], route.NanosOf(f.periods.start)
	added, removed := appeared(s.instances), f.removed(s)
	switch {
	case now > before && len(added) > 0:
		first := slices.MinFunc(added, func(a, b string) int { return cmp.Compare(s.instances[a].first, s.instances[b].first) })
		at, err = f.firstSpan(ofInstance(service, first), s.instances[first].first)
	case now < before && removed != "":
		if at = max(at, route.Nanos(s.instances[removed].last)); !f.sample.all {
			at, err = f.lastSpan(ofInstance(service, removed))
		}
	}
	if err == nil {
		f.found = append(f.found, change{At: at, Service: service, Kind: newInstances, From: strconv.Itoa(before), To: strconv.Itoa(now)})
	}
	return err
}

// ofInstance is the condition for spans of an instance.
func ofInstance(service, instance string) tracestore.Expr {
	var anyKey tracestore.Or
	for _, key := range storequery.InstanceKeys() {
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

// instances returns the number of instances of each service in a window. Services whose number is
// unknown are missing or 0.
func (f *changeFinder) instances(store tracestore.Aggregator, services []string, w core.Window) (map[string]int, error) {
	found := make(map[string]int)
	for _, key := range storequery.InstanceKeys() {
		services = slices.DeleteFunc(slices.Clone(services), func(name string) bool { _, known := found[name]; return known })
		if len(services) == 0 {
			break
		}
		complete, err := f.instancesBy(store, services, w, key, found)
		if err != nil || !complete {
			return nil, err
		}
	}
	return found, nil
}

// instancesBy counts the instances of services by the values of a resource attribute. complete is
// false if some may be missing.
func (f *changeFinder) instancesBy(
	store tracestore.Aggregator, services []string, w core.Window, key string, found map[string]int,
) (complete bool, _ error) {
	f.probes++
	var of tracestore.Or
	for _, service := range services {
		of = append(of, is(tracestore.Service, "", service))
	}
	held := f.slot.Held()
	a := core.Aggregation{Store: store, Window: w, Where: of, MaxSpans: maxInstanceSpans}
	a.Spec.Groups = tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.Service}, {Place: tracestore.ResourceAttribute, Key: key}},
		Limit: 1, All: true}
	got, err := f.slot.Aggregate(&a)
	if err != nil {
		return false, err
	}
	f.reasons.Add(got.Reasons...)
	if err := f.slot.SetHeld(held); err != nil || got.Groups == nil || !got.Complete() || got.Groups.Other > 0 {
		return false, err
	}
	spans := make(map[string]uint64)
	for i := range got.Groups.Groups {
		if g := &got.Groups.Groups[i]; g.Values[1].Present {
			found[g.Values[0].Text]++
			spans[g.Values[0].Text] += g.Durations.Count()
		}
	}
	for service, n := range spans {
		if got.Groups.Share < 1 && n < minInstanceSpans*uint64(found[service]) {
			found[service] = 0
		}
	}
	return true, nil
}
