// Package baseline serves data to compare a trace with: the usual durations of each operation (GET
// /api/ui/v1/baseline/{id}), and a typical trace with the same root (GET /api/ui/v1/typical/{id}).
package baseline

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/spanmetrics"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// API is the handlers.
type API struct{ backend *core.Backend }

// New returns the API over a backend. Usual values come from the quiet time within Limits.Baseline
// before the start of a trace. Operations with too little quiet time, or without calls in it, are
// looked up in the whole time, until an hour after the end of the trace.
func New(b *core.Backend) *API { return &API{b} }

// Routes returns the routes of the API.
func (a *API) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /api/ui/v1/baseline/{id}", Handler: a.handler(core.OpGetPerformance, a.durations)},
		{Pattern: "GET /api/ui/v1/typical/{id}", Handler: a.handler(core.OpFindSummaries, a.typical)},
	}
}

// query queries the store about a trace. It returns the data of the response, and why the response
// is incomplete.
type query func(slot *core.Slot, t *trace) (data any, incomplete tracestore.Reasons, err error)

// handler answers requests about one trace.
func (a *API) handler(op core.Operation, run query) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, ok := core.StoreAs[tracestore.Metrics](r.Context(), a.backend); !ok && op == core.OpGetPerformance {
			httpapi.WriteError(w, http.StatusNotImplemented, route.ErrUnsupported.Error()+" count the durations of operations")
			return
		}
		ref, _, slot := httpapi.AdmitTrace(a.backend, op, w, r)
		if slot == nil {
			return
		}
		defer slot.Release()
		var data any
		var incomplete tracestore.Reasons
		err := slot.Measure(func() (n int, err error) {
			t, err := readTrace(slot, ref)
			if err != nil {
				return 0, err
			}
			if len(t.calls) == 0 {
				return 0, core.ErrTraceNotFound
			}
			data, incomplete, err = run(slot, t)
			return 1, err
		})
		switch {
		case errors.Is(err, core.ErrTraceNotFound):
			httpapi.WriteError(w, http.StatusNotFound, err.Error())
			return
		case err != nil:
			httpapi.Fail(a.backend, w, r, err)
			return
		}
		route.WriteData(a.backend, w, r, data, incomplete)
	}
}

// quietTimes returns the quiet times before a trace, in order, in whole minutes, both ends
// inclusive. They exclude an incident that the trace is part of. If they are too short, it returns
// none.
func (a *API) quietTimes(slot *core.Slot, t *trace) ([]core.Window, error) {
	if t.End == 0 {
		return nil, nil
	}
	var services []string
	for key := range t.calls {
		services = append(services, key.Service)
	}
	slices.Sort(services)
	start := timeOf(t.Start).Truncate(time.Minute)
	times, incomplete, err := spanmetrics.QuietTimes(slot, slices.Compact(services), start, a.backend.Limits().Baseline)
	t.incomplete.Add(incomplete...)
	return times, err
}

// window returns the time around a trace in whole minutes, both ends inclusive.
func (a *API) window(t *trace) core.Window {
	const after = time.Hour // so that even the first traces of an operation can be compared
	now := a.backend.Now()
	begin, end := timeOf(t.Start), timeOf(t.End).Add(after)
	if end.After(now) || t.End == 0 {
		end = now
	}
	if begin.After(end) || t.End == 0 {
		begin = end
	}
	return core.Window{From: begin.Add(-a.backend.Limits().Baseline).Truncate(time.Minute), To: end.Truncate(time.Minute).Add(time.Minute - 1)}
}

// timeOf returns a time in nanoseconds since the Unix epoch, limited to the year 2262.
func timeOf(ns uint64) time.Time { return time.Unix(0, int64(min(ns, 1<<63-1))) }
