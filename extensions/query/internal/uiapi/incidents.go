package uiapi

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/spanmetrics"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// maxIncidents is the maximum number of listed incidents: the worst ones.
const maxIncidents = 8

// incidentsAnswer is the data of GET /api/ui/v1/incidents.
type incidentsAnswer struct {
	Incidents []systemIncident `json:"incidents"` // ongoing ones first, the worst of them first, then the latest
	Omitted   int              `json:"omitted"`   // further ones
}

// systemIncident is the incident of a service with the incidents of the services that depend on it.
type systemIncident struct {
	Source  affectedService   `json:"source"`
	Reached []affectedService `json:"reached"` // callers of the source first, then slow services with the same callers
	// Version is the version of the source that appeared with the incident, or null.
	Version *incidentVersion `json:"version"`
	Roots   *rootRequests    `json:"roots"` // null if unknown
	// Errors are the most frequent errors in the traces of failed requests, the innermost first.
	Errors   []incidentError `json:"errors"`
	Examined int             `json:"examined"` // traces in which errors were counted
	// TraceID and SpanID identify the newest bad request of the source, or are "".
	TraceID string `json:"traceID"`
	SpanID  string `json:"spanID"`
}

// affectedService is a service with its incident.
type affectedService struct {
	Name     string `json:"name"`
	AllSpans bool   `json:"allSpans"` // it has no requests: all its spans count
	incidentAnswer
	Usual *usualAnswer `json:"usual"`
}

// incidents parses GET /api/ui/v1/incidents, which returns the incidents in a time range, each with
// all affected services. `service` restricts them to incidents of some services.
func (a *API) incidents(ctx context.Context, v url.Values) (route.Query, error) {
	if _, ok := core.StoreAs[tracestore.Metrics](ctx, a.backend); !ok {
		return nil, fmt.Errorf("%w count the calls of services", route.ErrUnsupported)
	}
	w, err := route.WindowParams(v, a.backend.Now())
	if err != nil {
		return nil, err
	}
	q := spanmetrics.ServicesQuery{Periods: spanmetrics.NewPeriods(w.From, w.To, a.backend.Now(), defaultPoints),
		Limit: min(defaultServices, a.backend.Limits().Names)}
	of := v["service"]
	return func(slot *core.Slot) (any, tracestore.Reasons, error) {
		found, err := spanmetrics.FetchServices(slot, &q)
		if err != nil {
			return nil, nil, err
		}
		r := incidentReader{slot: slot, periods: &q.Periods, reasons: found.Incomplete}
		chains, err := r.chains(found.List)
		if err != nil {
			return nil, nil, err
		}
		if len(of) > 0 {
			chains = slices.DeleteFunc(chains, func(c *chain) bool { return !c.hasAny(of) })
		}
		out := &incidentsAnswer{Incidents: []systemIncident{}, Omitted: max(0, len(chains)-maxIncidents)}
		chains = chains[:len(chains)-out.Omitted]
		slices.SortStableFunc(chains, endedLast)
		for _, c := range chains {
			one, err := r.describe(c)
			if err != nil {
				return nil, nil, err
			}
			out.Incidents = append(out.Incidents, *one)
		}
		return out, r.reasons, nil
	}, nil
}

// incidentReader reads the details of incidents.
type incidentReader struct {
	slot    *core.Slot
	periods *spanmetrics.Periods
	reasons tracestore.Reasons // why data is missing
}

// describe returns an incident with all its details.
func (r *incidentReader) describe(c *chain) (*systemIncident, error) {
	out := &systemIncident{Source: affectedOf(c.source), Reached: []affectedService{}, Errors: []incidentError{}}
	for _, s := range c.reached {
		out.Reached = append(out.Reached, affectedOf(s))
	}
	if err := r.addErrors(c, out); err != nil {
		return nil, err
	}
	store, ok := core.SlotAs[tracestore.Aggregator](r.slot)
	if !ok {
		return out, nil
	}
	f := incidentFacts{incidentReader: r, store: store, chain: c, window: r.window(c.source.Incident)}
	var err error
	if out.Version, err = f.version(); err != nil {
		return nil, err
	}
	out.Roots, err = f.roots()
	return out, err
}

// window returns the time of an incident. If its start is unknown, the start of the range is used.
func (r *incidentReader) window(i *spanmetrics.Incident) core.Window {
	w := core.Window{From: i.Start, To: i.End}
	if w.From.IsZero() {
		w.From = r.periods.Start
	}
	if w.To.IsZero() {
		w.To = r.periods.End
	}
	w.To = w.To.Add(-1)
	return w
}

func affectedOf(s *spanmetrics.ServiceSeries) affectedService {
	answer := seriesOf(s)
	return affectedService{s.Name, s.AllSpans, *answer.Incident, answer.Usual}
}
