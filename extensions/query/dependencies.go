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
	from, to, err := parseDependencies(params, h.now())
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
	var g tracestore.Graph
	err = h.measure(opGetDependencies, func() (_ int, err error) {
		g, err = store.Dependencies(turn, server.Tenant(turn), from, to)
		return len(g.Edges), err
	})
	if err != nil {
		h.failed(w, r, err)
		return
	}
	var t tail
	if !g.Complete {
		t.Errors = []apiError{{Msg: incompleteText + g.Reason}}
	}
	h.answerLinks(newList(w, r), links(g.Edges, params.Get("service")), t)
}

// parseDependencies reads the parameters: milliseconds since the Unix epoch, and how many to look back. The end is inclusive in
// milliseconds, which is how clients see it.
func parseDependencies(v url.Values, now time.Time) (from, to time.Time, err error) {
	end, err := millisParam(v, "endTs", now.UnixMilli())
	if err != nil {
		return from, to, err
	}
	lookback, err := millisParam(v, "lookback", defaultDependenciesLookback.Milliseconds())
	if err != nil {
		return from, to, err
	}
	begin := end - lookback
	if lookback > 0 && begin > end { // too far back
		begin = math.MinInt64
	}
	return time.UnixMilli(begin), time.UnixMilli(end).Add(time.Millisecond - time.Nanosecond), nil
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

func (h *handler) answerLinks(l *list, all []link, t tail) {
	defer l.close()
	for i := range all {
		err := l.add(func(dst []byte) ([]byte, error) {
			dst = otlpdata.AppendJSONString(append(dst, `{"parent":`...), all[i].parent)
			dst = otlpdata.AppendJSONString(append(dst, `,"child":`...), all[i].child)
			dst = strconv.AppendUint(append(dst, `,"callCount":`...), all[i].calls, 10)
			return append(dst, '}'), nil
		})
		if err != nil {
			return // the client is gone
		}
	}
	h.finish(l, "[]", t)
}
