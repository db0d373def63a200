package errorgroups

import (
	"context"
	"net/url"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	defaultGroups = 50
	maxGroups     = 1000
)

// API is the handler of the route.
type API struct{ backend *core.Backend }

// New returns the API over a backend.
func New(b *core.Backend) *API { return &API{b} }

// Routes returns the routes of the API.
func (a *API) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /api/ui/v1/errors", Handler: route.Handler(a.backend, core.OpGetErrors, a.parse)},
	}
}

// parse parses GET /api/ui/v1/errors.
func (a *API) parse(_ context.Context, v url.Values) (route.Query, error) {
	w, err := route.WindowParams(v, a.backend.Now())
	if err != nil {
		return nil, err
	}
	limit, err := route.CountParam(v, "limit", defaultGroups, maxGroups)
	if err != nil {
		return nil, err
	}
	before, err := route.BoolParam(v, "before")
	if err != nil {
		return nil, err
	}
	set, err := httpapi.SetParam(v, "q")
	if err != nil {
		return nil, err
	}
	c := condition{set: set}
	if where, err := httpapi.SpanCondition(set); err == nil {
		c = condition{where: where}
	}
	return func(slot *core.Slot) (any, tracestore.Reasons, error) { return run(slot, w, c, limit, before) }, nil
}

// run reads the failed spans of the window and, if before is set, of the time of the same length
// before it.
func run(slot *core.Slot, w core.Window, c condition, limit int, before bool) (data any, incomplete tracestore.Reasons, err error) {
	memory, err := tracestore.Reserve(slot.Context(), 0)
	if err != nil {
		return nil, nil, err
	}
	defer memory.Release()
	groups := newGroups(w, memory)
	r := newReader(slot, w, c, groups.addSpan)
	if incomplete, err = r.read(); err != nil {
		return nil, nil, err
	}
	out := groups.answer(limit)
	out.period = r.period()
	if !before {
		return out, incomplete, nil
	}
	earlier := core.Window{From: w.From.Add(-w.To.Sub(w.From) - 1), To: w.From.Add(-1)}
	r = newReader(slot, earlier, c, groups.addBefore)
	missing, err := r.read()
	if err != nil {
		return nil, nil, err
	}
	if incomplete.Complete() {
		incomplete = missing
	}
	p := r.period()
	out.Before = &p
	groups.countBefore()
	return out, incomplete, nil
}
