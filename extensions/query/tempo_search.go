package query

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// tempoSearch answers GET /tempo/api/search with the traces that are found and the spans that matched in each.
func (h *handler) tempoSearch(w http.ResponseWriter, r *http.Request) {
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	asked, err := parseTempoSearch(params, h.now(), h.limits.traces)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t, err := h.admit(r.Context())
	if err != nil {
		h.failedTempo(w, r, err)
		return
	}
	defer t.done()
	a := tempoFound{stream: newStream(w, r), asked: &asked}
	defer a.close()
	err = h.measure(opFindTraces, func() (int, error) {
		err := a.find(t)
		return a.traces, err
	})
	missing := a.missing()
	if err != nil && a.isWorth(a.traces, err) {
		_, text := h.explain(http.Header{}, err)
		missing, err = incompleteText+text, nil
	}
	switch {
	case err != nil && (r.Context().Err() != nil || errors.Is(err, errUndelivered)): // nobody is listening
	case err != nil && a.sent > 0:
		h.tear(err)
	case err != nil:
		h.failedTempo(w, r, err)
	default:
		h.delivered(a.finish(missing))
	}
}

// tempoFound writes the answer to a search: `{"traces":[...],"metrics":{...}}`.
type tempoFound struct {
	stream
	asked   *tempoQuery
	traces  int
	outcome tracestore.Outcome
	trace   tempoMatch // the one that is being written
}

// query returns what to ask the store. The second of the end is one that clients have cut to: only its beginning is included.
func (q *tempoQuery) query(tenant string, max *limits) tracestore.Query {
	return tracestore.Query{
		Tenant: tenant, From: q.from, To: q.to, Limit: q.limit,
		Budget: tracestore.Budget{Spans: max.scanned, TraceSpans: max.traceSize},
	}
}

func (a *tempoFound) find(t *turn) (err error) {
	q := a.asked.query(server.Tenant(t), &t.backend.limits)
	a.buf = append(a.buf, `{"traces":[`...)
	a.outcome, err = t.findNamed(q, a.asked.set, func(id otlpdata.TraceID, spans *otlpdata.Batch) error {
		if err := a.trace.read(t, id, spans, a.asked); err != nil {
			return err
		}
		if err := t.holdBytes(t.held + 3*int64(len(a.trace.spans))); err != nil { // it is written twice
			return err
		}
		err := a.add(func(dst []byte) ([]byte, error) { return a.trace.appendJSON(comma(dst, a.traces)), nil })
		if err == nil {
			a.traces++
		}
		return err
	})
	return err
}

// missing says why traces may be missing, "" when there are none.
func (a *tempoFound) missing() string {
	if a.outcome.Complete {
		return ""
	}
	return incompleteText + a.outcome.Reason
}

func (a *tempoFound) finish(missing string) error {
	a.buf = append(a.buf, `],"metrics":{"inspectedSpans":"`...)
	a.buf = strconv.AppendInt(a.buf, int64(a.outcome.Scanned), 10)
	a.buf = append(a.buf, `","completedJobs":1,"totalJobs":1}`...)
	a.buf = append(appendWarning(a.buf, missing), '}')
	return a.flush()
}
