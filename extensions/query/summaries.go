package query

import (
	"encoding/hex"
	"net/http"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// summariesV3 answers GET /api/v3/trace-summaries. A summary is small, and max_limit bounds how many there are: they are gathered before
// anything is written.
func (h *handler) summariesV3(w http.ResponseWriter, r *http.Request) {
	s, err := parseSearchV3(r.URL.RawQuery)
	if err != nil {
		writeErrorV3(w, http.StatusBadRequest, err.Error())
		return
	}
	t, err := h.admit(r.Context())
	if err != nil {
		h.failedV3(w, r, err)
		return
	}
	defer t.done()
	a := newStream(w, r)
	defer a.close()
	a.buf = append(a.buf, `{"summaries":[`...)
	var incomplete string
	n := 0
	err = h.measure(opFindSummaries, func() (int, error) {
		q := s.exactly(server.Tenant(t), &h.limits)
		outcome, err := t.summaries(q, s.set, func(sum *tracestore.Summary) {
			a.buf = appendSummary(comma(a.buf, n), sum)
			n++
		})
		incomplete = s.incomplete(&outcome, q.Limit)
		return n, err
	})
	switch {
	case err != nil && a.isWorth(n, err):
		_, text := h.explain(http.Header{}, err)
		incomplete = incompleteText + text
	case err != nil:
		h.failedV3(w, r, err)
		return
	}
	a.buf = append(appendWarning(append(a.buf, ']'), incomplete), '}')
	h.delivered(a.flush())
}

// summaries is find for summaries.
func (t *turn) summaries(q tracestore.Query, set storequery.SpanSet, visit func(*tracestore.Summary)) (tracestore.Outcome, error) {
	results, err := t.results(q, set, tracestore.WantSummaries)
	if err != nil {
		return tracestore.Outcome{}, err
	}
	for res, err := range results.All {
		if err != nil {
			return tracestore.Outcome{}, err
		}
		visit(res.Summary)
	}
	return results.Outcome(), nil
}

// appendSummary leaves out what is zero, as clients expect of this encoding.
func appendSummary(dst []byte, s *tracestore.Summary) []byte {
	dst = append(dst, `{"traceId":"`...)
	dst = append(hex.AppendEncode(dst, s.ID[:]), '"')
	dst = appendString(dst, "rootServiceName", s.RootService)
	dst = appendString(dst, "rootOperationName", s.RootName)
	dst = appendNanos(dst, "minStartTimeUnixNano", s.Start)
	dst = appendNanos(dst, "maxEndTimeUnixNano", s.End)
	dst = appendInt(dst, "spanCount", s.Spans)
	dst = appendInt(dst, "errorSpanCount", s.Errors)
	dst = appendInt(dst, "orphanSpanCount", s.Orphans)
	if len(s.Services) > 0 {
		dst = append(dst, `,"services":[`...)
		for i := range s.Services {
			svc := &s.Services[i]
			dst = otlpdata.AppendJSONString(append(comma(dst, i), `{"name":`...), svc.Name)
			dst = appendInt(dst, "spanCount", svc.Spans)
			dst = append(appendInt(dst, "errorSpanCount", svc.Errors), '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// nextMember begins a member of an object that has some.
func nextMember(dst []byte, name string) []byte {
	return append(append(append(dst, `,"`...), name...), `":`...)
}

func appendString(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	return otlpdata.AppendJSONString(nextMember(dst, name), text)
}

func appendNanos(dst []byte, name string, ns uint64) []byte {
	if ns == 0 {
		return dst
	}
	return append(strconv.AppendUint(append(nextMember(dst, name), '"'), ns, 10), '"')
}

func appendInt(dst []byte, name string, n int) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(nextMember(dst, name), int64(n), 10)
}
