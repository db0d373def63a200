package servicemap

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	defaultNodes = 2000
	maxDepth     = 100
)

// API serves the service map.
type API struct{ backend *core.Backend }

// New returns the API over a backend.
func New(b *core.Backend) *API { return &API{b} }

// Routes returns the routes of the API.
func (a *API) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /api/ui/v1/map", Handler: route.Handler(a.backend, core.OpGetDependencies, a.parse)},
	}
}

// query is the parameters of a request.
type query struct {
	start, end time.Time // whole minutes; end is exclusive
	service    string    // "": all
	depth      int       // calls between the service and others
	limit      int       // nodes
}

var errDepth = errors.New("'depth' requires 'service'")

// parse parses GET /api/ui/v1/map, which returns services and the calls between them.
func (a *API) parse(ctx context.Context, v url.Values) (route.Query, error) {
	if _, ok := core.StoreAs[tracestore.Edges](ctx, a.backend); !ok {
		return nil, fmt.Errorf("%w count calls between services", route.ErrUnsupported)
	}
	w, err := route.WindowParams(v, a.backend.Now())
	if err != nil {
		return nil, err
	}
	q := query{service: v.Get("service")}
	q.start = time.Unix(0, max(w.From.UnixNano(), 0)).Truncate(time.Minute)
	q.end = w.To.Truncate(time.Minute).Add(time.Minute)
	if q.service == "" && v.Get("depth") != "" {
		return nil, errDepth
	}
	if q.depth, err = route.CountParam(v, "depth", 1, maxDepth); err != nil {
		return nil, err
	}
	most := max(a.backend.Limits().Names, 1)
	if q.limit, err = route.CountParam(v, "limit", min(defaultNodes, most), most); err != nil {
		return nil, err
	}
	return func(slot *core.Slot) (any, tracestore.Reasons, error) { return q.run(slot, a.backend.Now()) }, nil
}

// run asks the store and builds the response.
func (q *query) run(slot *core.Slot, now time.Time) (any, tracestore.Reasons, error) {
	m, err := measure(slot, q)
	if err != nil {
		return nil, nil, err
	}
	g := newGraph(m)
	if q.service != "" {
		g.surround(q.service, q.depth)
	}
	g.count()
	omitted := g.limit(q.limit, q.service)
	if omitted > 0 {
		m.reasons.Add(tracestore.Reason{Kind: tracestore.ReasonLimit,
			Text: fmt.Sprintf("%d services with fewer calls are left out (limit is %d)", omitted, q.limit)})
	}
	end := q.end
	if now.Before(end) && now.After(q.start) {
		end = now
	}
	return answerOf(q.start, end, g, m.durations), m.reasons, nil
}
