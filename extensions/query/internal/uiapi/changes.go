package uiapi

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/spanmetrics"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	defaultChanges = 50
	maxChanges     = 1000
	// maxProbes is the maximum number of searches to check the changes that the sample suggests.
	maxProbes = 500
	// maxNewServices is the maximum number of new services. Services with the most calls come
	// first.
	maxNewServices = 1000
	// usualTime is the time before the range that the range is compared with.
	usualTime = 24 * time.Hour
	// maxChangeTime is the time after which the search for changes stops.
	maxChangeTime = 5 * time.Second
)

// changesAnswer is the data of GET /api/ui/v1/changes.
type changesAnswer struct {
	Changes  []change `json:"changes"`
	Examined int      `json:"examined"` // spans of the sample; 0 if the store knows all values
	Complete bool     `json:"complete"` // all possible changes were checked and are listed
}

// change is a property of a service that is not usual. From and To are versions, numbers of
// instances, or "" and an attribute key.
type change struct {
	At      route.Nanos `json:"at"`
	Service string      `json:"service"`
	Kind    changeKind  `json:"kind"`
	From    string      `json:"from"`
	To      string      `json:"to"`
}

type changeKind string

const (
	newService   changeKind = "service"
	newVersion   changeKind = "version"
	newInstances changeKind = "instances"
	newAttribute changeKind = "attribute"
)

// changes parses GET /api/ui/v1/changes, which compares a time range with the time before.
func (a *API) changes(ctx context.Context, v url.Values) (route.Query, error) {
	store, ok := core.StoreAs[tracestore.Metrics](ctx, a.backend)
	if !ok {
		return nil, fmt.Errorf("%w count the calls of services", route.ErrUnsupported)
	}
	w, err := route.WindowParams(v, a.backend.Now())
	if err != nil {
		return nil, err
	}
	limit, err := route.CountParam(v, "limit", defaultChanges, maxChanges)
	if err != nil {
		return nil, err
	}
	return func(slot *core.Slot) (any, tracestore.Reasons, error) {
		f := changeFinder{slot: slot, metrics: store, periods: changePeriods{start: w.From, end: w.To}, end: a.backend.Now().Add(maxChangeTime),
			now: a.backend.Now}
		defer func() { f.sample.memory.Release() }()
		if err := f.find(); err != nil {
			return nil, nil, err
		}
		return f.answer(limit), f.reasons, nil
	}, nil
}

// changePeriods is a time range and the times with which it is compared, in order: the quiet times
// of the day before, see spanmetrics.QuietTimes, and the time just before the range. Values in
// these times are not new; values that occurred only during an incident are.
type changePeriods struct {
	start, end time.Time
	before     []core.Window
}

// earlier returns the period that ends 1 ns before the time range.
func (p *changePeriods) earlier(length time.Duration) core.Window {
	w := core.Window{From: p.start.Add(-length), To: p.start.Add(-1)}
	if first := time.Unix(0, 0); w.From.Before(first) {
		w.From = first
	}
	return w
}

// ends returns the times in which instances are counted: before the time range, and at its end.
func (p *changePeriods) ends() [2]core.Window {
	length := min(instanceWindow, p.end.Sub(p.start))
	return [2]core.Window{p.earlier(length), {From: p.end.Add(-length), To: p.end}}
}

func (p *changePeriods) current() core.Window { return core.Window{From: p.start, To: p.end} }

// learn finds the times with which the range is compared. If too little of the day before is quiet,
// it uses the whole day.
func (f *changeFinder) learn(services []string) error {
	p := &f.periods
	times, reasons, err := spanmetrics.QuietTimes(f.slot, services, p.start, usualTime)
	f.reasons.Add(reasons...)
	if len(times) == 0 {
		p.before = []core.Window{p.earlier(usualTime)}
		return err
	}
	last := p.earlier(instanceWindow)
	if end := &times[len(times)-1]; !end.To.Before(last.From) {
		end.To = last.To
	} else {
		times = append(times, last)
	}
	p.before = times
	return err
}

// changeFinder finds changes. New services follow from the counts of the store. Other changes come
// from what the store knows of attributes, or from a sample of traces, in which case they are
// checked with searches for a single match.
type changeFinder struct {
	slot    *core.Slot
	metrics tracestore.Metrics
	periods changePeriods
	now     func() time.Time
	end     time.Time // of looking for changes
	probes  int
	cut     bool // something was not checked
	sample  changeSample
	found   []change
	reasons tracestore.Reasons // why data is missing
}

func (f *changeFinder) find() error {
	now, err := f.calls(f.periods.current())
	if err != nil {
		return err
	}
	before, err := f.calls(f.periods.earlier(usualTime))
	if err != nil || len(before) == 0 {
		return err // there is nothing to compare with
	}
	if err := f.learn(slices.Sorted(maps.Keys(before))); err != nil {
		return err
	}
	missing, err := f.sample.read(f.slot, &f.periods)
	f.reasons.Add(missing...)
	if err != nil {
		return err
	}
	var appeared, others []string
	for _, service := range byCalls(now) {
		if before[service] == 0 {
			appeared = append(appeared, service)
			continue
		}
		others = append(others, service)
		if s := f.sample.services[service]; s != nil && !f.done() {
			if err := f.compare(service, s); err != nil {
				return err
			}
		}
	}
	if err := f.addInstances(others); err != nil {
		return err
	}
	return f.addServices(appeared)
}

// done reports whether the limit for work is reached, and records it.
func (f *changeFinder) done() bool {
	done := f.probes >= maxProbes || f.now().After(f.end)
	f.cut = f.cut || done
	return done
}

// calls returns the number of spans of each service.
func (f *changeFinder) calls(w core.Window) (map[string]uint64, error) {
	got, err := f.metrics.Metrics(f.slot.Context(), f.slot.Tenant(),
		tracestore.MetricsQuery{From: w.From, To: w.To, Step: max(w.To.Sub(w.From), 1)})
	if err != nil {
		return nil, err
	}
	f.reasons.Add(got.Reasons...)
	calls := make(map[string]uint64, len(got.Series))
	for i := range got.Series {
		for _, p := range got.Series[i].Points {
			calls[got.Series[i].Service] += p.Calls
		}
	}
	return calls, nil
}

// byCalls returns the services with the most calls first.
func byCalls(calls map[string]uint64) []string {
	names := make([]string, 0, len(calls))
	for name := range calls {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(calls[b], calls[a]), strings.Compare(a, b)) })
	return names
}

func (f *changeFinder) answer(limit int) *changesAnswer {
	slices.SortFunc(f.found, func(a, b change) int {
		return cmp.Or(cmp.Compare(b.At, a.At), strings.Compare(a.Service, b.Service), cmp.Compare(a.Kind, b.Kind), strings.Compare(a.To, b.To))
	})
	out := &changesAnswer{Changes: []change{}, Examined: f.sample.spans, Complete: !f.cut && len(f.found) <= limit}
	out.Changes = append(out.Changes, f.found[:min(len(f.found), limit)]...)
	return out
}
