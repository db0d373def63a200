package jaegerapi

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const defaultDependenciesLookback = 24 * time.Hour

// dependencies serves GET /api/dependencies.
func (a *API) dependencies(w http.ResponseWriter, r *http.Request) {
	params, err := httpapi.Query(r)
	if err != nil {
		httpapi.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	q, err := parseDependencies(params, a.backend.Now())
	if err != nil {
		httpapi.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	store, ok := core.StoreAs[tracestore.Edges](r.Context(), a.backend)
	if !ok {
		httpapi.WriteError(w, http.StatusNotImplemented, core.ErrNoDependencies.Error())
		return
	}
	slot, err := a.backend.Admit(r.Context(), core.OpGetDependencies)
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	defer slot.Release()
	var calls, peers tracestore.Graph
	err = slot.Measure(func() (_ int, err error) {
		calls, peers, err = q.run(slot, store)
		return len(calls.Edges) + len(peers.Edges), err
	})
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	a.writeDependencies(w, r, &q, &calls, &peers)
}

func (a *API) writeDependencies(w http.ResponseWriter, r *http.Request, q *dependenciesQuery, calls, peers *tracestore.Graph) {
	var footer httpapi.Footer
	for _, message := range slices.Compact([]string{core.IncompleteMessage(calls.Reasons), core.IncompleteMessage(peers.Reasons)}) {
		footer.AddError(message)
	}
	if q.details {
		links := detailedLinks(calls.Edges, peers.Edges, q.service)
		httpapi.WriteList(a.backend, w, r, len(links), "[]", footer,
			func(dst []byte, i int) []byte { return links[i].appendJSON(dst) })
		return
	}
	links := core.Links(calls.Edges, q.service)
	httpapi.WriteList(a.backend, w, r, len(links), "[]", footer,
		func(dst []byte, i int) []byte { return appendLink(dst, &links[i]) })
}

// dependenciesQuery holds the parameters of GET /api/dependencies.
type dependenciesQuery struct {
	from, to time.Time // inclusive
	service  string    // caller or callee; "" for all
	details  bool
}

// run returns the calls between services and, with details, the calls to peers if the store knows
// them.
func (q *dependenciesQuery) run(slot *core.Slot, store tracestore.Edges) (calls, peers tracestore.Graph, err error) {
	calls, err = store.Dependencies(slot.Context(), slot.Tenant(), q.from, q.to)
	if !q.details || err != nil {
		return calls, peers, err
	}
	if peers, err = store.Peers(slot.Context(), slot.Tenant(), q.from, q.to); errors.Is(err, tracestore.ErrUnsupported) {
		err = nil
	}
	return calls, peers, err
}

// parseDependencies parses the end, in milliseconds since the Unix epoch, and the lookback in
// milliseconds. The end is inclusive in milliseconds, the precision that clients see.
func parseDependencies(v url.Values, now time.Time) (q dependenciesQuery, err error) {
	end, err := httpapi.MillisParam(v, "endTs", now.UnixMilli())
	if err != nil {
		return q, err
	}
	lookback, err := httpapi.MillisParam(v, "lookback", defaultDependenciesLookback.Milliseconds())
	if err != nil {
		return q, err
	}
	begin := end - lookback
	if lookback > 0 && begin > end { // overflow
		begin = math.MinInt64
	}
	q.from, q.to = time.UnixMilli(begin), time.UnixMilli(end).Add(time.Millisecond-time.Nanosecond)
	q.service = v.Get("service")
	q.details, err = httpapi.BoolParam(v, "details")
	return q, err
}

func appendLink(dst []byte, l *core.Link) []byte {
	dst = otlpdata.AppendJSONString(append(dst, `{"parent":`...), l.Parent)
	dst = otlpdata.AppendJSONString(append(dst, `,"child":`...), l.Child)
	dst = strconv.AppendUint(append(dst, `,"callCount":`...), l.Calls, 10)
	return append(dst, '}')
}
