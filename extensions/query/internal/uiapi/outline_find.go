package uiapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// maxFindText is the maximum length in bytes of a text to find in a trace.
const maxFindText = 1 << 10

// find serves GET /api/ui/v1/outline/{id}/find: the ids of the spans that match a text or a search.
func (a *API) find(w http.ResponseWriter, r *http.Request) {
	v, err := httpapi.Query(r)
	var f findParams
	if err == nil {
		f, err = parseFind(a.backend.Language(r.Context()), v)
	}
	if err != nil {
		httpapi.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	a.answerPart(w, r, func(slot *core.Slot, ref tracestore.TraceRef, out *httpapi.Stream) (int, tracestore.Reasons, error) {
		found, incomplete, err := f.run(slot, ref)
		if err != nil {
			return 0, nil, err
		}
		return 1, incomplete, out.Add(func(dst []byte) ([]byte, error) { return appendFound(dst, found.IDs, out.Spill) })
	})
}

// findParams says which spans of a trace to find.
type findParams struct {
	condition tracestore.SpanCondition
	set       storequery.SpanSet // instead of condition, nil for none
}

// parseFind parses `q`: a search, which begins with a brace, or a text.
func parseFind(l traceql.Language, v url.Values) (f findParams, err error) {
	q := v.Get("q")
	switch {
	case q == "":
		return f, httpapi.ParamError("q", errors.New("must not be empty"))
	case !strings.HasPrefix(strings.TrimLeft(q, "( \t\n"), "{"):
		if len(q) > maxFindText {
			return f, httpapi.ParamError("q", fmt.Errorf("longer than %d bytes", maxFindText))
		}
		f.condition.Text = q
		return f, nil
	}
	parsed, err := httpapi.QueryParam(l, v, "q")
	f.set = parsed.Set
	if s, single := parsed.Set.(storequery.Select); single {
		if _, ofTrace := storequery.PlacesOf(s.Where); !ofTrace {
			f.condition.Where, f.set = s.Where, nil
		}
	}
	return f, err
}

// run returns the matching spans. Searches for structures and for fields of the trace need the
// whole trace.
func (f *findParams) run(slot *core.Slot, ref tracestore.TraceRef) (found tracestore.FoundSpans, incomplete tracestore.Reasons, err error) {
	if f.set == nil {
		return slot.FindSpans(ref, f.condition)
	}
	pieces, incomplete, err := slot.Trace(ref)
	if err == nil && len(pieces) == 0 {
		err = core.ErrTraceNotFound
	}
	if err != nil {
		return found, nil, err
	}
	err = storequery.VisitSelected(slot.Context(), f.set, ref.ID, false, func(s tracestore.Span) error {
		found.IDs = append(found.IDs, s.SpanID)
		return nil
	}, pieces...)
	return found, incomplete, err
}

// appendFound appends ids and their number as an object.
func appendFound(dst []byte, ids []otlpdata.SpanID, spill spill) (_ []byte, err error) {
	dst = strconv.AppendInt(append(dst, `{"matched":`...), int64(len(ids)), 10)
	dst, err = appendIDs(append(dst, `,"ids":"`...), len(ids), func(i int) otlpdata.SpanID { return ids[i] }, spill)
	return append(dst, `"}`...), err
}
