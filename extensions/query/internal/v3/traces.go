package v3

import (
	"net/http"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/internal/translate/otlpjson"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// trace serves GET /api/v3/traces/{id}.
func (a *API) trace(w http.ResponseWriter, r *http.Request) {
	ref, raw, err := parseTraceRequest(r)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	a.writeTraces(w, r, core.OpGetTrace, func(slot *core.Slot, out *traceWriter) error {
		pieces, incomplete, err := slot.Trace(ref)
		if err == nil && len(pieces) > 0 {
			err = out.addPieces(a.backend.Adjustment(raw), pieces...)
		}
		out.incomplete = core.IncompleteMessage(incomplete)
		return err
	})
}

// search serves GET /api/v3/traces.
func (a *API) search(w http.ResponseWriter, r *http.Request) {
	s, err := parseSearch(a.backend.Language(r.Context()), r)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	a.writeTraces(w, r, core.OpFindTraces, func(slot *core.Slot, out *traceWriter) error {
		q := slot.SearchQuery(&s)
		opt := a.backend.Adjustment(s.Raw)
		outcome, err := slot.Find(q, s.Set, func(_ otlpdata.TraceID, trace *otlpdata.Batch) error { return out.addPieces(opt, trace) })
		out.incomplete, out.next = s.Incomplete(&outcome, q.Limit), s.NextPage(q.Tenant, &outcome)
		out.continues = s.After.Set
		return err
	})
}

// traceWriter writes traces as one object, `{"result":{"resourceSpans":[...]}}`.
type traceWriter struct {
	stream *httpapi.Stream
	spans  otlpjson.Writer
	traces int

	incomplete string // why traces may be missing, or ""
	next       string // the token of the next page, or ""
	continues  bool   // the result is not the first page
}

func (t *traceWriter) addPieces(opt adjust.Options, pieces ...*otlpdata.Batch) error {
	err := t.stream.Add(func(dst []byte) ([]byte, error) {
		t.spans.Buf = dst
		err := adjust.Walk(opt, &t.spans, pieces...)
		t.spans.End()
		return t.spans.Buf, err
	})
	if err == nil {
		t.traces++
	}
	return err
}

// writeTraces responds with the traces that fill adds.
func (a *API) writeTraces(w http.ResponseWriter, r *http.Request, op core.Operation, fill func(*core.Slot, *traceWriter) error) {
	slot, err := a.backend.Admit(r.Context(), op)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer slot.Release()
	s := httpapi.NewStream(w, r)
	defer s.Close()
	s.Buf = append(s.Buf, `{"result":{"resourceSpans":[`...)
	out := &traceWriter{stream: s}
	out.spans.Flush = s.Spill
	err = slot.Measure(func() (int, error) {
		err := fill(slot, out)
		return out.traces, err
	})
	if err != nil && core.CanEnd(out.traces, err) {
		_, text := a.backend.HTTPError(http.Header{}, err)
		out.incomplete, err = core.IncompleteText+text, nil
	}
	switch {
	case err != nil && httpapi.Gone(r, err):
	case err != nil && s.Sent():
		a.backend.Abort(err)
	case err != nil:
		a.fail(w, r, err)
	case out.traces == 0 && out.incomplete == "" && !out.continues:
		writeError(w, http.StatusNotFound, "No traces found")
	default:
		s.Buf = append(httpapi.AppendWarnings(appendNextPage(append(s.Buf, "]}"...), out.next), out.incomplete), '}')
		a.backend.LogUndelivered(s.Flush())
	}
}
