package jaegerapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/translate/uijson"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// trace serves GET /api/traces/{id}.
func (a *API) trace(w http.ResponseWriter, r *http.Request) {
	ref, raw, slot := httpapi.AdmitTrace(a.backend, core.OpGetTrace, w, r)
	if slot == nil {
		return
	}
	defer slot.Release()
	l := httpapi.NewList(w, r)
	defer l.Close()
	var footer httpapi.Footer
	err := slot.Measure(func() (int, error) {
		pieces, incomplete, err := slot.Trace(ref)
		if err == nil && len(pieces) > 0 {
			footer.Errors = appendIncomplete(nil, core.IncompleteMessage(incomplete), ref.ID)
			err = a.addTrace(l, raw, pieces)
		}
		return l.Len(), err
	})
	switch {
	case err != nil:
		a.endWithError(w, r, l, err)
	case l.Len() == 0:
		httpapi.WriteError(w, http.StatusNotFound, core.ErrTraceNotFound.Error())
	default:
		a.backend.LogUndelivered(l.Finish("[]", footer))
	}
}

// appendIncomplete appends a message about a trace, unless it is empty.
func appendIncomplete(list []httpapi.Error, msg string, id otlpdata.TraceID) []httpapi.Error {
	if msg == "" {
		return list
	}
	return append(list, httpapi.Error{Msg: msg, TraceID: id.String()})
}

// search serves GET /api/traces.
func (a *API) search(w http.ResponseWriter, r *http.Request) {
	s, err := a.parseSearchRequest(r)
	if err != nil {
		httpapi.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	op, run := core.OpFindTraces, a.find
	if len(s.IDs) > 0 {
		op, run = core.OpGetTrace, a.byIDs
	}
	slot, err := a.backend.Admit(r.Context(), op)
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	defer slot.Release()
	l := httpapi.NewList(w, r)
	defer l.Close()
	var footer httpapi.Footer
	err = slot.Measure(func() (_ int, err error) {
		footer.Errors, err = run(slot, l, &s)
		return l.Len(), err
	})
	if err != nil {
		a.endWithError(w, r, l, err)
		return
	}
	a.backend.LogUndelivered(l.Finish("[]", footer))
}

// byIDs adds the requested traces and returns an error for each trace that does not exist or is
// damaged.
func (a *API) byIDs(slot *core.Slot, l *httpapi.List, s *core.Search) (missing []httpapi.Error, _ error) {
	for _, id := range s.IDs {
		pieces, incomplete, err := slot.Trace(tracestore.TraceRef{ID: id})
		switch {
		case errors.Is(err, core.ErrTraceDamaged):
			missing = appendIncomplete(missing, err.Error(), id)
			continue
		case err != nil:
			return nil, err
		case len(pieces) == 0:
			missing = append(missing, httpapi.Error{Msg: core.ErrTraceNotFound.Error(), TraceID: id.String()})
			continue
		}
		missing = appendIncomplete(missing, core.IncompleteMessage(incomplete), id)
		if err := a.addTrace(l, s.Raw, pieces); err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// find adds the traces that match a search, and returns a message if some may be missing.
func (a *API) find(slot *core.Slot, l *httpapi.List, s *core.Search) ([]httpapi.Error, error) {
	q := slot.SearchQuery(s)
	q.To = q.To.Add(time.Microsecond - time.Nanosecond) // clients see starts in microseconds, and the end is inclusive
	outcome, err := slot.Find(q, s.Set, func(_ otlpdata.TraceID, trace *otlpdata.Batch) error {
		return a.addTrace(l, s.Raw, []*otlpdata.Batch{trace})
	})
	if err != nil {
		return nil, err
	}
	if text := s.Incomplete(&outcome, q.Limit); text != "" {
		return []httpapi.Error{{Msg: text}}, nil
	}
	return nil, nil
}

func (a *API) addTrace(l *httpapi.List, raw bool, pieces []*otlpdata.Batch) error {
	opt := uijson.Options{Options: a.backend.Adjustment(raw), Flush: l.Stream().Spill}
	return l.Add(func(dst []byte) ([]byte, error) { return uijson.AppendTrace(dst, opt, pieces...) })
}

// endWithError ends a response when the query fails. After a timeout, the response contains the
// traces found until then, with a warning.
func (a *API) endWithError(w http.ResponseWriter, r *http.Request, l *httpapi.List, err error) {
	switch {
	case httpapi.Gone(r, err):
	case core.CanEnd(l.Len(), err):
		status, text := a.backend.HTTPError(http.Header{}, err)
		footer := httpapi.Footer{Errors: []httpapi.Error{{Code: status, Msg: core.IncompleteText + text}}}
		a.backend.LogUndelivered(l.Finish("[]", footer))
	case l.Stream().Sent():
		a.backend.Abort(err)
	default:
		httpapi.Fail(a.backend, w, r, err)
	}
}

// archiveTrace serves POST /api/archive/{id}.
func (a *API) archiveTrace(w http.ResponseWriter, r *http.Request) {
	ref, _, slot := httpapi.AdmitTrace(a.backend, core.OpArchiveTrace, w, r)
	if slot == nil {
		return
	}
	defer slot.Release()
	err := slot.Measure(func() (int, error) { return slot.ArchiveTrace(ref) })
	switch {
	case errors.Is(err, core.ErrTraceNotFound):
		httpapi.WriteError(w, http.StatusNotFound, err.Error())
	case err != nil:
		httpapi.Fail(a.backend, w, r, err)
	default:
		l := httpapi.NewList(w, r)
		defer l.Close()
		a.backend.LogUndelivered(l.Finish("[]", httpapi.Footer{Errors: []httpapi.Error{}}))
	}
}

func (a *API) parseSearchRequest(r *http.Request) (s core.Search, err error) {
	params, err := httpapi.Query(r)
	if err != nil {
		return s, err
	}
	s, err = parseSearch(a.backend.Language(r.Context()), params, a.backend.Now())
	if most := a.backend.Limits().Traces; err == nil && len(s.IDs) > most {
		err = fmt.Errorf("%d traceID parameters, more than max_limit (%d)", len(s.IDs), most)
	}
	return s, err
}
