package uiapi

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/spanmetrics"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	defaultOperations = 50
	// maxOperationPoints is lower than maxPoints, because the store counts up to
	// tracestore.MaxOperations operations.
	maxOperationPoints = 240
)

// oneServiceAnswer is the data of GET /api/ui/v1/service. Times are as in servicesAnswer.
type oneServiceAnswer struct {
	Start      route.Nanos  `json:"start"`
	End        route.Nanos  `json:"end"`
	UsualStart route.Nanos  `json:"usualStart"`
	Step       int64        `json:"step"`
	Points     int          `json:"points"`
	Roles      []roleAnswer `json:"roles"` // requests, calls, internal
}

type roleAnswer struct {
	Role       string            `json:"role"`
	Total      operationAnswer   `json:"total"`
	Operations []operationAnswer `json:"operations"`
	Omitted    int               `json:"omitted"`
}

type operationAnswer struct {
	Name string `json:"name"`
	Time uint64 `json:"time"` // sum of durations
	serviceSeries
}

var errNoServiceName = errors.New("is missing")

// service parses GET /api/ui/v1/service, which returns rate, errors and durations of the spans of
// one service, by role and operation.
func (a *API) service(ctx context.Context, v url.Values) (route.Query, error) {
	if _, ok := core.StoreAs[tracestore.Metrics](ctx, a.backend); !ok {
		return nil, fmt.Errorf("%w count the calls of services", route.ErrUnsupported)
	}
	q := spanmetrics.ServiceQuery{Service: v.Get("service")}
	if q.Service == "" {
		return nil, httpapi.ParamError("service", errNoServiceName)
	}
	w, err := route.WindowParams(v, a.backend.Now())
	if err != nil {
		return nil, err
	}
	points, err := route.CountParam(v, "points", defaultPoints, maxOperationPoints)
	if err != nil {
		return nil, err
	}
	most := a.backend.Limits().Names
	if q.Limit, err = route.CountParam(v, "limit", min(defaultOperations, most), most); err != nil {
		return nil, err
	}
	q.Periods = spanmetrics.NewPeriods(w.From, w.To, a.backend.Now(), points)
	return func(slot *core.Slot) (any, tracestore.Reasons, error) {
		roles, incomplete, err := spanmetrics.FetchService(slot, &q)
		if err != nil {
			return nil, nil, err
		}
		return oneServiceOf(&q.Periods, roles), incomplete, nil
	}, nil
}

func oneServiceOf(p *spanmetrics.Periods, roles []spanmetrics.RoleSpans) *oneServiceAnswer {
	out := &oneServiceAnswer{Start: route.NanosOf(p.Start), End: route.NanosOf(p.End), UsualStart: route.NanosOf(p.UsualStart),
		Step: int64(p.Step), Points: p.Points}
	for i := range roles {
		r := &roles[i]
		answer := roleAnswer{Role: r.Role.Name, Total: operationOf(&r.Total), Operations: []operationAnswer{}, Omitted: r.Omitted}
		for j := range r.Operations {
			answer.Operations = append(answer.Operations, operationOf(&r.Operations[j]))
		}
		out.Roles = append(out.Roles, answer)
	}
	return out
}

func operationOf(s *spanmetrics.ServiceSeries) operationAnswer {
	return operationAnswer{Name: s.Name, Time: s.Time, serviceSeries: seriesOf(s)}
}
