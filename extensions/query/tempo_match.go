package query

import (
	"context"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/internal/translate/otlpjson"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// tempoMatch is a trace that was found, and the spans of it that a search chooses. It is used for one trace after the other.
type tempoMatch struct {
	summary tracestore.Summary
	matched int    // spans
	spans   []byte // the first of them, encoded
}

// read finds out about a trace. Where the spans that were searched for are behind the part of a long trace that was read, none match.
func (m *tempoMatch) read(ctx context.Context, id otlpdata.TraceID, trace *otlpdata.Batch, q *tempoQuery) error {
	*m = tempoMatch{spans: m.spans[:0]}
	from, to, _ := tracestore.Query{From: q.from, To: q.to}.Window()
	err := storequery.VisitSelected(ctx, q.set, id, func(s tracestore.Span) error {
		if m.summary.Spans == 0 {
			m.summary = *s.Trace
		}
		if s.Start < from || s.Start > to {
			return nil
		}
		if m.matched++; m.matched <= q.spans {
			m.spans = q.appendSpan(comma(m.spans, m.matched-1), s)
		}
		return nil
	}, trace)
	if err == nil && m.summary.Spans == 0 {
		m.summary, err = storequery.Summarize(id, trace)
	}
	return err
}

// appendJSON appends a TraceSearchMetadata (tempopb, tempo.proto). The list of sets has one; older clients read the one that stands alone.
func (m *tempoMatch) appendJSON(dst []byte) []byte {
	s := &m.summary
	dst = append(dst, `{"traceID":"`...)
	dst = append(append(dst, s.ID.String()...), '"')
	dst = appendString(dst, "rootServiceName", s.RootService)
	dst = appendString(dst, "rootTraceName", s.RootName)
	dst = appendNanos(dst, "startTimeUnixNano", s.Start)
	dst = appendInt(dst, "durationMs", int(min((s.End-s.Start)/uint64(time.Millisecond), math.MaxUint32)))
	dst = m.appendSet(nextMember(dst, "spanSet"))
	dst = m.appendSet(append(nextMember(dst, "spanSets"), '['))
	dst = append(dst, `],"serviceStats":{`...)
	for i := range s.Services {
		svc := &s.Services[i]
		dst = append(otlpdata.AppendJSONString(comma(dst, i), svc.Name), `:{"spanCount":`...)
		dst = strconv.AppendInt(dst, int64(svc.Spans), 10)
		dst = append(appendInt(dst, "errorCount", svc.Errors), '}')
	}
	return append(dst, "}}"...)
}

func (m *tempoMatch) appendSet(dst []byte) []byte {
	dst = append(append(append(dst, `{"spans":[`...), m.spans...), `],"matched":`...)
	return append(strconv.AppendInt(dst, int64(m.matched), 10), '}')
}

// appendSpan appends a span with the fields that the search names.
func (q *tempoQuery) appendSpan(dst []byte, s tracestore.Span) []byte {
	dst = append(dst, `{"spanID":"`...)
	dst = append(hex.AppendEncode(dst, s.SpanID[:]), '"')
	dst = appendString(dst, "name", s.Operation())
	dst = appendNanos(dst, "startTimeUnixNano", s.Start)
	ns, _ := s.Duration()
	dst = append(appendNanos(dst, "durationNanos", ns), `,"attributes":[`...)
	shown := 0
	for _, f := range q.fields {
		for v := range f.Values(s) {
			if f.Place == tracestore.Kind && v.Str() == "" {
				v = otlpdata.StringValue("unspecified") // as searches write it
			}
			dst = otlpjson.AppendAttribute(comma(dst, shown), shownName(f), v)
			shown++
			break
		}
	}
	return append(dst, "]}"...)
}

// maxShownFields is how many fields are shown of a span at most.
const maxShownFields = 32

// shownFields returns the fields that a search names, those of the trace and what is shown of every span aside.
func shownFields(q *traceql.Query) (fields []tracestore.Field) {
	show := func(f tracestore.Field) {
		switch f.Place {
		case tracestore.Name, tracestore.Duration, tracestore.TraceDuration, tracestore.RootService, tracestore.RootName:
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

// shownName returns what a field is called in answers: attributes by their key, whatever they belong to.
func shownName(f tracestore.Field) string {
	switch {
	case f.Place == tracestore.Service:
		return serviceKey
	case f.Place.HasKey():
		return f.Key
	}
	return traceql.FormatField(f)
}
