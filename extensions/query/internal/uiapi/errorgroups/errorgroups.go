package errorgroups

import (
	"context"
	"errors"
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

// API serves error groups.
type API struct{ backend *core.Backend }

// New returns the API over a backend.
func New(b *core.Backend) *API { return &API{b} }

// Routes returns the routes of the API.
func (a *API) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /api/ui/v1/errors", Handler: route.Handler(a.backend, core.OpGetErrors, a.parse)},
	}
}

// request is a request for groups.
type request struct {
	window   core.Window
	where    condition
	limit    int
	before   bool // compare with the time of the same length before
	byGrowth bool // the groups that have grown most first
}

// parse parses GET /api/ui/v1/errors.
func (a *API) parse(ctx context.Context, v url.Values) (route.Query, error) {
	var r request
	var err error
	if r.window, err = route.WindowParams(v, a.backend.Now()); err != nil {
		return nil, err
	}
	if r.limit, err = route.CountParam(v, "limit", defaultGroups, maxGroups); err != nil {
		return nil, err
	}
	if r.before, err = route.BoolParam(v, "before"); err != nil {
		return nil, err
	}
	if r.byGrowth, err = growthParam(v); err != nil {
		return nil, err
	}
	set, err := httpapi.SetParam(a.backend.Language(ctx), v, "q")
	if err != nil {
		return nil, err
	}
	r.where = condition{set: set}
	if where, err := httpapi.SpanCondition(set); err == nil {
		r.where = condition{where: where}
	}
	return r.run, nil
}

var errSort = errors.New("must be count or growth")

// growthParam parses `sort`.
func growthParam(v url.Values) (byGrowth bool, err error) {
	switch v.Get("sort") {
	case "", "count":
		return false, nil
	case "growth":
		return true, nil
	}
	return false, httpapi.ParamError("sort", errSort)
}

// run counts the groups of the window and, if before is set, of the time before it, and then reads
// an example of each listed group.
func (r *request) run(slot *core.Slot) (data any, incomplete tracestore.Reasons, err error) {
	memory, err := tracestore.Reserve(slot.Context(), 0)
	if err != nil {
		return nil, nil, err
	}
	defer memory.Release()
	c := newCounter(slot, r.where, memory)
	now, err := c.count(r.window)
	if err != nil {
		return nil, nil, err
	}
	incomplete.Add(now.reasons...)
	var before *counted
	if r.before {
		earlier := core.Window{From: r.window.From.Add(-r.window.To.Sub(r.window.From) - 1), To: r.window.From.Add(-1)}
		if before, err = c.countGroups(earlier); err != nil {
			return nil, nil, err
		}
		if incomplete.Complete() {
			incomplete = before.reasons
		}
		first, err := c.firstSpan(core.Window{From: earlier.From, To: r.window.To})
		if err != nil {
			return nil, nil, err
		}
		now.first, before.first = max(now.first, first), max(before.first, first)
	}
	now.setTrends(before)
	if r.before {
		reasons, err := c.compareDays(r.window, now)
		if err != nil {
			return nil, nil, err
		}
		if incomplete.Complete() {
			incomplete = reasons
		}
	}
	list := now.sorted(r.byGrowth)
	listed := list[:min(len(list), r.limit)]
	if err := c.refine(listed, now.parts.Length); err != nil {
		return nil, nil, err
	}
	if err := c.readExamples(r.window, listed); err != nil {
		return nil, nil, err
	}
	return answerOf(now, before, listed, len(list)-len(listed)), incomplete, nil
}
