package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/internal/translate/uijson"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const traceNotFound = "trace not found"

// trace answers GET /api/traces/{id}.
func (h *handler) trace(w http.ResponseWriter, r *http.Request) {
	ref, raw, err := parseTraceRequest(r)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.limits.timeout)
	defer cancel()
	l := newList(w, r)
	defer l.close()
	err = h.measure(opGetTrace, func() (int, error) {
		err := h.storedTraces(ctx, []tracestore.TraceRef{ref}, func(_ otlpdata.TraceID, pieces []*otlpdata.Batch) error {
			return h.addTrace(l, raw, pieces)
		})
		return l.count, err
	})
	switch {
	case err != nil:
		h.interrupted(l, r, err)
	case l.count == 0:
		writeError(w, http.StatusNotFound, traceNotFound)
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
	ctx, cancel := context.WithTimeout(r.Context(), h.limits.timeout)
	defer cancel()
	l := newList(w, r)
	defer l.close()
	op, ask := opFindTraces, h.find
	if len(s.ids) > 0 {
		op, ask = opGetTrace, h.byIDs
	}
	var t tail
	err = h.measure(op, func() (_ int, err error) {
		t.Errors, err = ask(ctx, l, &s)
		return l.count, err
	})
	if err != nil {
		h.interrupted(l, r, err)
		return
	}
	h.finish(l, "[]", t)
}

// byIDs adds the traces that are asked for, and returns an error for each that does not exist.
func (h *handler) byIDs(ctx context.Context, l *list, s *search) ([]apiError, error) {
	refs := make([]tracestore.TraceRef, len(s.ids))
	missing := make(map[otlpdata.TraceID]bool, len(s.ids))
	for i, id := range s.ids {
		refs[i].ID, missing[id] = id, true
	}
	err := h.storedTraces(ctx, refs, func(id otlpdata.TraceID, pieces []*otlpdata.Batch) error {
		delete(missing, id)
		return h.addTrace(l, s.raw, pieces)
	})
	if err != nil {
		return nil, err
	}
	var errs []apiError
	for _, id := range s.ids {
		if missing[id] {
			errs = append(errs, apiError{Msg: traceNotFound, TraceID: id.String()})
		}
	}
	return errs, nil
}

// find adds the traces that a search finds, and returns what the client has to know when some may be missing.
func (h *handler) find(ctx context.Context, l *list, s *search) ([]apiError, error) {
	limit := s.limit
	if limit <= 0 || limit > h.limits.traces {
		limit = h.limits.traces
	}
	results, err := h.store.Find(ctx, s.query(server.Tenant(ctx), limit, h.limits.scanned), tracestore.WantFull)
	if err != nil {
		return nil, err
	}
	for res, err := range results.All {
		if err != nil {
			return nil, err
		}
		if err := h.addTrace(l, s.raw, []*otlpdata.Batch{res.Spans}); err != nil {
			return nil, err
		}
	}
	outcome := results.Outcome()
	switch {
	case !outcome.Complete:
		return []apiError{{Msg: "result is incomplete: " + outcome.Reason}}, nil
	case outcome.Next.Set && limit != s.limit:
		return []apiError{{Msg: fmt.Sprintf("result is incomplete: one answer holds at most max_limit (%d) traces", limit)}}, nil
	}
	return nil, nil
}

// addTrace adds one trace to the answer.
func (h *handler) addTrace(l *list, raw bool, pieces []*otlpdata.Batch) error {
	opt := uijson.Options{Raw: raw, MaxSpans: h.limits.traceSize}
	if !l.pretty { // which takes the whole trace
		opt.Flush = l.spill
	}
	return l.add(func(dst []byte) ([]byte, error) { return uijson.AppendTrace(dst, opt, pieces...) })
}

// storedTraces calls add for each trace that exists, with its pieces. It reads no more of a trace than it takes to know what is shown.
func (h *handler) storedTraces(ctx context.Context, refs []tracestore.TraceRef,
	add func(otlpdata.TraceID, []*otlpdata.Batch) error) error {
	for i := range refs {
		var pieces []*otlpdata.Batch
		spans := 0
		for t, err := range h.store.Traces(ctx, server.Tenant(ctx), refs[i:i+1]) {
			if err != nil {
				return err
			}
			pieces = append(pieces, t.Spans)
			if spans += t.Spans.Len(); spans > h.limits.traceSize {
				break
			}
		}
		if len(pieces) == 0 {
			continue
		}
		if err := add(refs[i].ID, pieces); err != nil {
			return err
		}
	}
	return nil
}

// interrupted ends an answer of traces that the store broke off. A search that ran out of time is answered with what it found. When
// a part is with the client already, the answer is completed and says what happened.
func (h *handler) interrupted(l *list, r *http.Request, err error) {
	timeout := errors.Is(err, context.DeadlineExceeded)
	switch {
	case r.Context().Err() != nil || errors.Is(err, errUndelivered): // nobody is listening
	case timeout && l.count > 0:
		h.finish(l, "[]", tail{Errors: []apiError{{Code: http.StatusGatewayTimeout, Msg: "result is incomplete: " + h.timeoutText()}}})
	case l.sent:
		h.logger.Error("HTTP handler, Internal Server Error", zap.Error(err))
		h.finish(l, "[]", tail{Errors: []apiError{{Code: http.StatusInternalServerError, Msg: "result is incomplete: " + err.Error()}}})
	default:
		h.failed(l.w, r, err)
	}
}
