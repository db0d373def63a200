package query

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const defaultDependenciesLookback = 24 * time.Hour

var errNoDependencies = errors.New("the store does not know which services call each other")

// dependencies answers GET /api/dependencies.
func (h *handler) dependencies(w http.ResponseWriter, r *http.Request) {
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	q, err := parseDependencies(params, h.now())
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	store, ok := h.store.(tracestore.Dependencies)
	if !ok {
		writeError(w, http.StatusNotImplemented, errNoDependencies.Error())
		return
	}
	turn, err := h.admit(r.Context())
	if err != nil {
		h.failed(w, r, err)
		return
	}
	defer turn.done()
	var calls, peers tracestore.Graph
	err = h.measure(opGetDependencies, func() (_ int, err error) {
		calls, peers, err = q.ask(turn, store)
		return len(calls.Edges) + len(peers.Edges), err
	})
	if err != nil {
		h.failed(w, r, err)
		return
	}
	var t tail
	for _, reason := range []string{calls.Reason, peers.Reason} {
		if reason != "" {
			t.Errors = append(t.Errors, apiError{Msg: incompleteText + reason})
		}
	}
	l := newList(w, r)
	if q.details {
		answerEach(h, l, detailedLinks(calls.Edges, peers.Edges, q.service), detailedLink.appendJSON, t)
		return
	}
	answerEach(h, l, links(calls.Edges, q.service), link.appendJSON, t)
}

// dependenciesQuery is what is asked for.
type dependenciesQuery struct {
	from, to time.Time // inclusive
	service  string    // that calls or is called; "": any
	details  bool
}

// ask returns the calls between services and, with details, those to peers, which not every store knows.
func (q *dependenciesQuery) ask(t *turn, store tracestore.Dependencies) (calls, peers tracestore.Graph, err error) {
	calls, err = store.Dependencies(t, server.Tenant(t), q.from, q.to)
	if p, ok := store.(tracestore.Peers); ok && q.details && err == nil {
		peers, err = p.Peers(t, server.Tenant(t), q.from, q.to)
	}
	return calls, peers, err
}

// parseDependencies reads the parameters: milliseconds since the Unix epoch, and how many to look back. The end is inclusive in
// milliseconds, which is how clients see it.
func parseDependencies(v url.Values, now time.Time) (q dependenciesQuery, err error) {
	end, err := millisParam(v, "endTs", now.UnixMilli())
	if err != nil {
		return q, err
	}
	lookback, err := millisParam(v, "lookback", defaultDependenciesLookback.Milliseconds())
	if err != nil {
		return q, err
	}
	begin := end - lookback
	if lookback > 0 && begin > end { // too far back
		begin = math.MinInt64
	}
	q.from, q.to = time.UnixMilli(begin), time.UnixMilli(end).Add(time.Millisecond-time.Nanosecond)
	q.service = v.Get("service")
	q.details, err = boolParam(v, "details")
	return q, err
}

func millisParam(v url.Values, name string, absent int64) (int64, error) {
	p := v.Get(name)
	if p == "" {
		return absent, nil
	}
	ms, err := strconv.ParseInt(p, 10, 64)
	if err != nil {
		return 0, paramError(name, err)
	}
	return ms, nil
}

// link is an element of the answer.
type link struct {
	parent, child string
	calls         uint64
}

// links returns the calls between two different services, of any kind; only those from and to one service unless that is "". What a service
// calls within itself is not shown. Edges are sorted, and so are links.
func links(edges []tracestore.Edge, service string) []link {
	var out []link
	for i := range edges {
		e := &edges[i]
		if e.Parent == e.Child || service != "" && e.Parent != service && e.Child != service {
			continue
		}
		if n := len(out); n > 0 && out[n-1].parent == e.Parent && out[n-1].child == e.Child {
			out[n-1].calls += e.Calls
			continue
		}
		out = append(out, link{e.Parent, e.Child, e.Calls})
	}
	return out
}

func (l link) appendJSON(dst []byte) []byte {
	dst = otlpdata.AppendJSONString(append(dst, `{"parent":`...), l.parent)
	dst = otlpdata.AppendJSONString(append(dst, `,"child":`...), l.child)
	dst = strconv.AppendUint(append(dst, `,"callCount":`...), l.calls, 10)
	return append(dst, '}')
}

// answerEach writes a list of small elements.
func answerEach[E any](h *handler, l *list, all []E, appendJSON func(E, []byte) []byte, t tail) {
	defer l.close()
	for _, e := range all {
		if err := l.add(func(dst []byte) ([]byte, error) { return appendJSON(e, dst), nil }); err != nil {
			return // the client is gone
		}
	}
	h.finish(l, "[]", t)
}
