package query

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/tracing-backend/tracing/internal/translate/uijson"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// admitTrace reads a request that is about one trace and lets it in. Where it does not, the turn is nil, and the request is answered.
func (h *handler) admitTrace(w http.ResponseWriter, r *http.Request) (ref tracestore.TraceRef, raw bool, t *turn) {
	ref, raw, err := parseTraceRequest(r)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return ref, raw, nil
	}
	if t, err = h.admit(r.Context()); err != nil {
		h.failed(w, r, err)
		return ref, raw, nil
	}
	return ref, raw, t
}

// trace answers GET /api/traces/{id}.
func (h *handler) trace(w http.ResponseWriter, r *http.Request) {
	ref, raw, t := h.admitTrace(w, r)
	if t == nil {
		return
	}
	defer t.done()
	l := newList(w, r)
	defer l.close()
	err := h.measure(opGetTrace, func() (int, error) {
		pieces, err := t.trace(server.Tenant(t), ref)
		if err == nil && len(pieces) > 0 {
			err = h.addTrace(l, raw, pieces)
		}
		return l.count, err
	})
	switch {
	case err != nil:
		h.interrupted(l, r, err)
	case l.count == 0:
		writeError(w, http.StatusNotFound, errTraceNotFound.Error())
	default:
		h.finish(l, "[]", tail{})
	}
}

func parseTraceRequest(r *http.Request) (ref tracestore.TraceRef, raw bool, err error) {
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return ref, false, err
	}
	if ref.ID, err = parsePathID(r.PathValue("id")); err != nil {
		return ref, false, err
	}
	if ref.From, err = timeParam(v, "start", time.Time{}); err != nil {
		return ref, false, err
	}
	if ref.To, err = timeParam(v, "end", time.Time{}); err != nil {
		return ref, false, err
	}
	raw, err = boolParam(v, "raw")
	return ref, raw, err
}

// search answers GET /api/traces.
func (h *handler) search(w http.ResponseWriter, r *http.Request) {
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	s, err := parseSearch(params, h.now())
	if err == nil && len(s.ids) > h.limits.traces {
		err = fmt.Errorf("%d traceID parameters, more than max_limit (%d)", len(s.ids), h.limits.traces)
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	turn, err := h.admit(r.Context())
	if err != nil {
		h.failed(w, r, err)
		return
	}
	defer turn.done()
	l := newList(w, r)
	defer l.close()
	op, ask := opFindTraces, h.find
	if len(s.ids) > 0 {
		op, ask = opGetTrace, h.byIDs
	}
	var t tail
	err = h.measure(op, func() (_ int, err error) {
		t.Errors, err = ask(turn, l, &s)
		return l.count, err
	})
	if err != nil {
		h.interrupted(l, r, err)
		return
	}
	h.finish(l, "[]", t)
}

// byIDs adds the traces that are asked for, and returns an error for each that does not exist.
func (h *handler) byIDs(t *turn, l *list, s *search) (missing []apiError, _ error) {
	for _, id := range s.ids {
		pieces, err := t.trace(server.Tenant(t), tracestore.TraceRef{ID: id})
		switch {
		case err != nil:
			return nil, err
		case len(pieces) == 0:
			missing = append(missing, apiError{Msg: errTraceNotFound.Error(), TraceID: id.String()})
			continue
		}
		if err := h.addTrace(l, s.raw, pieces); err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// find adds the traces that a search finds, and returns what the client has to know when some may be missing.
func (h *handler) find(t *turn, l *list, s *search) ([]apiError, error) {
	q := h.query(t, s)
	outcome, err := t.find(q, s.set, func(trace *otlpdata.Batch) error { return h.addTrace(l, s.raw, []*otlpdata.Batch{trace}) })
	if err != nil {
		return nil, err
	}
	if text := s.incomplete(&outcome, q.Limit); text != "" {
		return []apiError{{Msg: text}}, nil
	}
	return nil, nil
}

// incompleteText begins what clients are told about an answer that is not complete.
const incompleteText = "result is incomplete: "

// incomplete says why traces may be missing, "" when there are none.
func (s *search) incomplete(o *tracestore.Outcome, limit int) string {
	switch {
	case !o.Complete:
		return incompleteText + o.Reason
	case o.Next.Set && limit != s.limit:
		return fmt.Sprintf(incompleteText+"one answer holds at most max_limit (%d) traces", limit)
	}
	return ""
}

// addTrace adds one trace to the answer.
func (h *handler) addTrace(l *list, raw bool, pieces []*otlpdata.Batch) error {
	opt := uijson.Options{Options: h.adjustment(raw), Flush: l.spill}
	return l.add(func(dst []byte) ([]byte, error) { return uijson.AppendTrace(dst, opt, pieces...) })
}

// interrupted ends an answer of traces that was broken off. A search that ran out of time is answered with what it found, and says so.
func (h *handler) interrupted(l *list, r *http.Request, err error) {
	switch {
	case r.Context().Err() != nil || errors.Is(err, errUndelivered): // nobody is listening
	case l.isWorth(l.count, err):
		status, text := h.explain(http.Header{}, err)
		h.finish(l, "[]", tail{Errors: []apiError{{Code: status, Msg: incompleteText + text}}})
	case l.sent > 0:
		h.tear(err)
	default:
		h.failed(l.w, r, err)
	}
}

// tear cuts the connection, since a part of the answer is with the client, who must not take it for the whole.
func (h *handler) tear(err error) {
	h.explain(http.Header{}, err)
	panic(http.ErrAbortHandler)
}
