package uiapi

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/spanmetrics"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	defaultPoints   = 60 // steps of a series
	maxPoints       = 1000
	defaultServices = 1000
)

// servicesAnswer is the data of GET /api/ui/v1/services. Start, End and UsualStart are whole
// minutes, except End if it is the current time. The read data begins at UsualStart; usual values
// are from the day before End.
type servicesAnswer struct {
	Start      route.Nanos     `json:"start"`
	End        route.Nanos     `json:"end"` // exclusive
	UsualStart route.Nanos     `json:"usualStart"`
	Step       int64           `json:"step"`
	Points     int             `json:"points"`
	Total      serviceSeries   `json:"total"`
	Services   []serviceAnswer `json:"services"`
}

type serviceAnswer struct {
	Name     string `json:"name"`
	Inferred bool   `json:"inferred"` // has no spans of its own
	serviceSeries
}

type serviceSeries struct {
	Calls   []uint64    `json:"calls"`
	Errors  []uint64    `json:"errors"`
	P50     nanosOrNull `json:"p50"`
	P95     nanosOrNull `json:"p95"`
	P99     nanosOrNull `json:"p99"`
	Summary redAnswer   `json:"summary"`
	// Usual is null if too little is known.
	Usual    *usualAnswer    `json:"usual"`
	Incident *incidentAnswer `json:"incident"`
	// Since holds the calls since the start of the ongoing incident, or of the first one for sums.
	// It is null if there is none.
	Since *sinceAnswer `json:"since"`
}

type sinceAnswer struct {
	Start route.Nanos `json:"start"`
	redAnswer
}

// usualAnswer describes the calls in quiet time. Quiet is its length in nanoseconds.
type usualAnswer struct {
	redAnswer
	Quiet int64 `json:"quiet"`
}

// incidentAnswer is the latest period in the range in which a service is worse than usual. Start is
// null if it is unknown, End if the incident is ongoing.
type incidentAnswer struct {
	Kind  spanmetrics.IncidentKind `json:"kind"`
	Start *route.Nanos             `json:"start"`
	End   *route.Nanos             `json:"end"`
	// SlowFrom is the duration from which requests count as slow, 0 for errors.
	SlowFrom int64 `json:"slowFrom"`
	redAnswer
}

// redAnswer holds the number, errors and durations of calls. Durations are null without calls.
type redAnswer struct {
	Calls  uint64 `json:"calls"`
	Errors uint64 `json:"errors"`
	P50    *int64 `json:"p50"`
	P95    *int64 `json:"p95"`
	P99    *int64 `json:"p99"`
}

// nanosOrNull holds durations in nanoseconds, which are rounded in JSON. NaN is null.
type nanosOrNull []float64

// MarshalJSON implements json.Marshaler.
func (n nanosOrNull) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i, d := range n {
		if i > 0 {
			out = append(out, ',')
		}
		if math.IsNaN(d) {
			out = append(out, "null"...)
		} else {
			out = strconv.AppendInt(out, int64(math.Round(d)), 10)
		}
	}
	return append(out, ']'), nil
}

// services parses GET /api/ui/v1/services, which returns rate, errors and durations of the requests
// of each service.
func (a *API) services(ctx context.Context, v url.Values) (route.Query, error) {
	if _, ok := core.StoreAs[tracestore.Metrics](ctx, a.backend); !ok {
		return nil, fmt.Errorf("%w count the calls of services", route.ErrUnsupported)
	}
	w, err := route.WindowParams(v, a.backend.Now())
	if err != nil {
		return nil, err
	}
	points, err := route.CountParam(v, "points", defaultPoints, maxPoints)
	if err != nil {
		return nil, err
	}
	most := a.backend.Limits().Names
	limit, err := route.CountParam(v, "limit", min(defaultServices, most), most)
	if err != nil {
		return nil, err
	}
	q := spanmetrics.ServicesQuery{Periods: spanmetrics.NewPeriods(w.From, w.To, a.backend.Now(), points), Limit: limit}
	return func(slot *core.Slot) (any, tracestore.Reasons, error) {
		found, err := spanmetrics.FetchServices(slot, &q)
		if err != nil {
			return nil, nil, err
		}
		return servicesOf(&q.Periods, found), found.Incomplete, nil
	}, nil
}

func servicesOf(p *spanmetrics.Periods, s *spanmetrics.Services) *servicesAnswer {
	out := &servicesAnswer{Start: route.NanosOf(p.Start), End: route.NanosOf(p.End), UsualStart: route.NanosOf(p.UsualStart),
		Step: int64(p.Step), Points: p.Points, Total: seriesOf(&s.Total), Services: make([]serviceAnswer, len(s.List))}
	for i := range s.List {
		out.Services[i] = serviceAnswer{Name: s.List[i].Name, serviceSeries: seriesOf(&s.List[i])}
	}
	return out
}

func seriesOf(s *spanmetrics.ServiceSeries) serviceSeries {
	out := serviceSeries{Calls: s.Calls, Errors: s.Errors, P50: s.P50, P95: s.P95, P99: s.P99, Summary: redOf(&s.Summary)}
	if u := s.Usual; u != nil {
		out.Usual = &usualAnswer{redOf(&u.Red), int64(u.Quiet)}
	}
	if i := s.Incident; i != nil {
		out.Incident = &incidentAnswer{i.Kind, knownTime(i.Start), knownTime(i.End), route.Duration(i.SlowFrom), redOf(&i.Red)}
	}
	if since := s.Since; since != nil {
		out.Since = &sinceAnswer{route.NanosOf(since.Start), redOf(&since.Red)}
	}
	return out
}

// knownTime returns nil for the zero time.
func knownTime(t time.Time) *route.Nanos {
	if t.IsZero() {
		return nil
	}
	n := route.NanosOf(t)
	return &n
}

func redOf(r *spanmetrics.Red) redAnswer {
	rounded := func(d float64) *int64 {
		if math.IsNaN(d) {
			return nil
		}
		n := int64(math.Round(d))
		return &n
	}
	return redAnswer{r.Calls, r.Errors, rounded(r.P50), rounded(r.P95), rounded(r.P99)}
}
