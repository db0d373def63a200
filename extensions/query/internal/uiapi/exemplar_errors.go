package uiapi

import (
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/failure"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// maxErrorTypes is the maximum number of failed exemplars whose spans are read to find out what
// failed.
const maxErrorTypes = 200

// errorTypes returns the failure.Title of each exemplar, or "" if it did not fail or was not read.
// If reading takes too long, the exemplars are shown without titles.
func errorTypes(slot *core.Slot, list []tracestore.Exemplar) []string {
	out := make([]string, len(list))
	read := 0
	for i := range list {
		e := &list[i]
		if !e.Failed || read == maxErrorTypes {
			continue
		}
		read++
		at := time.Unix(0, int64(e.Start))
		ref := tracestore.TraceRef{ID: e.TraceID, From: at, To: at.Add(time.Duration(e.Duration))}
		spans, _, err := slot.SelectSpans(ref, map[otlpdata.SpanID]struct{}{e.SpanID: {}})
		if err != nil {
			return out
		}
		for _, b := range spans {
			_ = tracestore.WalkSpans(b, func(s tracestore.Span) error {
				if s.SpanID == e.SpanID && s.StatusCode == otlpdata.StatusError && out[i] == "" {
					out[i] = strings.Clone(storequery.FacetText(failure.Title(s.Span)))
				}
				return nil
			})
		}
	}
	return out
}
