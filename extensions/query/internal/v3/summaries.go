package v3

import (
	"encoding/hex"
	"net/http"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// summaries serves GET /api/v3/trace-summaries. The whole response is held in memory, because
// summaries are small and max_limit bounds their number.
func (a *API) summaries(w http.ResponseWriter, r *http.Request) {
	search, err := parseSearch(a.backend.Language(r.Context()), r)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	slot, err := a.backend.Admit(r.Context(), core.OpFindSummaries)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer slot.Release()
	s := httpapi.NewStream(w, r)
	defer s.Close()
	s.Buf = append(s.Buf, `{"summaries":[`...)
	var incomplete, next string
	n := 0
	err = slot.Measure(func() (int, error) {
		q := slot.SearchQuery(&search)
		outcome, err := slot.FindSummaries(q, search.Set, func(sum *tracestore.Summary) {
			s.Buf = appendSummary(httpapi.Comma(s.Buf, n), sum)
			n++
		})
		incomplete, next = search.Incomplete(&outcome, q.Limit), search.NextPage(q.Tenant, &outcome)
		return n, err
	})
	switch {
	case err != nil && core.CanEnd(n, err):
		_, text := a.backend.HTTPError(http.Header{}, err)
		incomplete = core.IncompleteText + text
	case err != nil:
		a.fail(w, r, err)
		return
	}
	s.Buf = append(httpapi.AppendWarnings(appendNextPage(append(s.Buf, ']'), next), incomplete), '}')
	a.backend.LogUndelivered(s.Flush())
}

// appendNextPage appends the token of the next page, unless it is "".
func appendNextPage(dst []byte, token string) []byte {
	return httpapi.AppendString(dst, "nextPageToken", token)
}

// appendSummary omits empty members, as the JSON form of protobuf does.
func appendSummary(dst []byte, s *tracestore.Summary) []byte {
	dst = append(dst, `{"traceId":"`...)
	dst = append(hex.AppendEncode(dst, s.ID[:]), '"')
	dst = httpapi.AppendString(dst, "rootServiceName", s.RootService)
	dst = httpapi.AppendString(dst, "rootOperationName", s.RootName)
	dst = httpapi.AppendNanos(dst, "minStartTimeUnixNano", s.Start)
	dst = httpapi.AppendNanos(dst, "maxEndTimeUnixNano", s.End)
	dst = httpapi.AppendInt(dst, "spanCount", s.Spans)
	dst = httpapi.AppendInt(dst, "errorSpanCount", s.Errors)
	dst = httpapi.AppendInt(dst, "orphanSpanCount", s.Orphans)
	if len(s.Services) > 0 {
		dst = append(dst, `,"services":[`...)
		for i := range s.Services {
			svc := &s.Services[i]
			dst = otlpdata.AppendJSONString(append(httpapi.Comma(dst, i), `{"name":`...), svc.Name)
			dst = httpapi.AppendInt(dst, "spanCount", svc.Spans)
			dst = append(httpapi.AppendInt(dst, "errorSpanCount", svc.Errors), '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}
