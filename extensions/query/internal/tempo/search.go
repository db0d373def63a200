package tempo

import (
	"net/http"
	"strconv"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// search serves GET /tempo/api/search: the traces that match, and the matching spans of each.
func (a *API) search(w http.ResponseWriter, r *http.Request) {
	params, err := httpapi.Query(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q, err := parseSearch(a.backend.Language(r.Context()), params, a.backend.Now(), a.backend.Limits().Traces)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	slot, err := a.backend.Admit(r.Context(), core.OpFindTraces)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer slot.Release()
	s := httpapi.NewStream(w, r)
	defer s.Close()
	found := searchWriter{stream: s, query: &q}
	err = slot.Measure(func() (int, error) {
		err := found.run(slot)
		return found.traces, err
	})
	incomplete := core.IncompleteMessage(found.outcome.Reasons)
	if err != nil && core.CanEnd(found.traces, err) {
		_, text := a.backend.HTTPError(http.Header{}, err)
		incomplete, err = core.IncompleteText+text, nil
	}
	switch {
	case err != nil && httpapi.Gone(r, err):
	case err != nil && s.Sent():
		a.backend.Abort(err)
	case err != nil:
		a.fail(w, r, err)
	default:
		a.backend.LogUndelivered(found.finish(incomplete))
	}
}

// searchWriter runs a search and writes its response, `{"traces":[...],"metrics":{...}}`.
type searchWriter struct {
	stream  *httpapi.Stream
	query   *searchQuery
	traces  int
	outcome tracestore.Outcome
}

// run appends the traces.
func (f *searchWriter) run(slot *core.Slot) (err error) {
	f.stream.Buf = append(f.stream.Buf, `{"traces":[`...)
	f.outcome, err = f.query.find(slot, func(m *match) error {
		err := f.stream.Add(func(dst []byte) ([]byte, error) { return m.appendJSON(httpapi.Comma(dst, f.traces)), nil })
		if err == nil {
			f.traces++
		}
		return err
	})
	return err
}

// find calls found for each trace that matches. The end of the time range is inclusive to the
// nanosecond, because clients truncate it to a full second.
func (q *searchQuery) find(slot *core.Slot, found func(*match) error) (tracestore.Outcome, error) {
	var m match
	where := tracestore.Query{Tenant: slot.Tenant(), From: q.window.From, To: q.window.To, Limit: q.limit, Budget: slot.Budget()}
	return slot.Find(where, q.set, func(id otlpdata.TraceID, spans *otlpdata.Batch) error {
		if err := m.read(slot.Context(), id, spans, q); err != nil {
			return err
		}
		if err := slot.HoldMore(3 * m.size()); err != nil { // they are written twice
			return err
		}
		return found(&m)
	})
}

// finish completes and sends the response. incomplete is a warning, or "".
func (f *searchWriter) finish(incomplete string) error {
	dst := append(f.stream.Buf, `],"metrics":{"inspectedSpans":"`...)
	dst = strconv.AppendInt(dst, int64(f.outcome.Scanned), 10)
	dst = append(dst, `","completedJobs":1,"totalJobs":1}`...)
	f.stream.Buf = append(httpapi.AppendWarnings(dst, incomplete), '}')
	return f.stream.Flush()
}
