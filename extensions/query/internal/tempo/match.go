package tempo

import (
	"context"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/internal/translate/otlpjson"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// match is a trace with its spans that match a search. It is reused for further traces.
type match struct {
	summary tracestore.Summary
	matched int    // number of spans
	spans   []byte // the first of them, encoded
}

// read sets m to a trace. If a trace is too long to be read as a whole and the matching spans are
// in the rest, m has none.
func (m *match) read(ctx context.Context, id otlpdata.TraceID, trace *otlpdata.Batch, q *searchQuery) error {
	*m = match{spans: m.spans[:0]}
	from, to, _ := tracestore.Query{From: q.window.From, To: q.window.To}.Window()
	err := storequery.VisitSelected(ctx, q.set, id, true, func(s tracestore.Span) error {
		if m.summary.Spans == 0 {
			m.summary = *s.Trace
		}
		if s.Start < from || s.Start > to {
			return nil
		}
		if m.matched++; m.matched <= q.spans {
			m.spans = q.appendSpan(httpapi.Comma(m.spans, m.matched-1), s)
		}
		return nil
	}, trace)
	if err == nil && m.summary.Spans == 0 {
		m.summary, err = storequery.Summarize(id, trace)
	}
	return err
}

// appendJSON appends a TraceSearchMetadata of tempo.proto (tempopb). It contains the set of spans
// twice: in the list spanSets, and separately for older clients.
func (m *match) appendJSON(dst []byte) []byte {
	s := &m.summary
	dst = append(dst, `{"traceID":"`...)
	dst = append(append(dst, s.ID.String()...), '"')
	dst = httpapi.AppendString(dst, "rootServiceName", s.RootService)
	dst = httpapi.AppendString(dst, "rootTraceName", s.RootName)
	dst = httpapi.AppendNanos(dst, "startTimeUnixNano", s.Start)
	dst = httpapi.AppendInt(dst, "durationMs", int(min((s.End-s.Start)/uint64(time.Millisecond), math.MaxUint32)))
	dst = m.appendSet(httpapi.AppendMember(dst, "spanSet"))
	dst = m.appendSet(append(httpapi.AppendMember(dst, "spanSets"), '['))
	dst = append(dst, `],"serviceStats":{`...)
	for i := range s.Services {
		svc := &s.Services[i]
		dst = append(otlpdata.AppendJSONString(httpapi.Comma(dst, i), svc.Name), `:{"spanCount":`...)
		dst = strconv.AppendInt(dst, int64(svc.Spans), 10)
		dst = append(httpapi.AppendInt(dst, "errorCount", svc.Errors), '}')
	}
	return append(dst, "}}"...)
}

func (m *match) appendSet(dst []byte) []byte {
	dst = append(append(append(dst, `{"spans":[`...), m.spans...), `],"matched":`...)
	return append(strconv.AppendInt(dst, int64(m.matched), 10), '}')
}

// appendSpan appends a span with the fields that the search names.
func (q *searchQuery) appendSpan(dst []byte, s tracestore.Span) []byte {
	dst = append(dst, `{"spanID":"`...)
	dst = append(hex.AppendEncode(dst, s.SpanID[:]), '"')
	dst = httpapi.AppendString(dst, "name", s.Operation())
	dst = httpapi.AppendNanos(dst, "startTimeUnixNano", s.Start)
	ns, _ := s.Duration()
	dst = append(httpapi.AppendNanos(dst, "durationNanos", ns), `,"attributes":[`...)
	shown := 0
	for _, f := range q.fields {
		for v := range f.Values(s) {
			if word := f.Place.Info().Empty; word != "" && v.Str() == "" {
				v = otlpdata.StringValue(word)
			}
			dst = otlpjson.AppendAttribute(httpapi.Comma(dst, shown), shownName(f), v)
			shown++
			break
		}
	}
	return append(dst, "]}"...)
}

// maxShownFields is the maximum number of fields shown for a span.
const maxShownFields = 32

// shownFields returns the fields that a search names, except fields of the trace and fields that
// are shown for every span.
func shownFields(q *traceql.Query) (fields []tracestore.Field) {
	show := func(f tracestore.Field) {
		if !f.Place.OfSpan() || f.Place == tracestore.Name || f.Place == tracestore.Duration {
			return
		}
		if len(fields) < maxShownFields && !slices.Contains(fields, f) {
			fields = append(fields, f)
		}
	}
	for _, f := range q.Select {
		show(f)
	}
	eachField(q.Set, show)
	return fields
}

func eachField(set storequery.SpanSet, visit func(tracestore.Field)) {
	switch s := set.(type) {
	case storequery.Select:
		for f := range tracestore.Fields(s.Where) {
			visit(f)
		}
	case storequery.And:
		eachField(s.Left, visit)
		eachField(s.Right, visit)
	case storequery.Or:
		eachField(s.Left, visit)
		eachField(s.Right, visit)
	case storequery.Descendant: // fields of ancestors are not shown
		eachField(s.Spans, visit)
	case storequery.Child: // fields of parents are not shown
		eachField(s.Spans, visit)
	}
}

// shownName returns the name of a field in responses. For attributes it is the key, regardless of
// scope.
func shownName(f tracestore.Field) string {
	switch {
	case f.Place == tracestore.Service:
		return core.ServiceKey
	case f.Place.HasKey():
		return f.Key
	}
	return traceql.FormatField(f)
}
