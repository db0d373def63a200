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
	sets    []foundSet // at least one
	set     []byte     // an encoded set
}

// foundSet holds the matching spans of a trace, or of one of its groups.
type foundSet struct {
	values  []otlpdata.KeyValue // of the group
	matched int                 // number of spans
	spans   []foundSpan         // the first of them
}

// maxSets is the maximum number of groups of a trace in a response.
const maxSets = 100

// foundSpan is a span with the fields that the search names.
type foundSpan struct {
	id              otlpdata.SpanID
	name            string
	start, duration uint64 // nanoseconds
	fields          []otlpdata.KeyValue
}

// read sets m to a trace. If a trace is too long to be read as a whole and the matching spans are
// in the rest, m has none.
func (m *match) read(ctx context.Context, id otlpdata.TraceID, trace *otlpdata.Batch, q *searchQuery) error {
	*m = match{sets: make([]foundSet, 1), set: m.set}
	from, to, _ := tracestore.Query{From: q.window.From, To: q.window.To}.Window()
	values, err := storequery.VisitGroups(ctx, q.set, id, func(group int, s tracestore.Span) error {
		if m.summary.Spans == 0 {
			m.summary = *s.Trace
		}
		if s.Start < from || s.Start > to {
			return nil
		}
		if group >= maxSets {
			return nil
		}
		for len(m.sets) <= group {
			m.sets = append(m.sets, foundSet{})
		}
		set := &m.sets[group]
		if set.matched++; set.matched <= q.spans {
			set.spans = append(set.spans, q.found(s))
		}
		return nil
	}, trace)
	for i := range m.sets[:min(len(m.sets), len(values))] {
		for _, v := range values[i] {
			m.sets[i].values = append(m.sets[i].values, shownValue(v))
		}
	}
	m.sets = slices.DeleteFunc(m.sets, func(s foundSet) bool { return s.matched == 0 && len(m.sets) > 1 })
	if len(m.sets) == 0 {
		m.sets = make([]foundSet, 1)
	}
	if err == nil && m.summary.Spans == 0 {
		m.summary, err = storequery.Summarize(id, trace)
	}
	return err
}

// found returns a span with the fields that the search names.
func (q *searchQuery) found(s tracestore.Span) foundSpan {
	ns, _ := s.Duration()
	out := foundSpan{id: s.SpanID, name: s.Operation(), start: s.Start, duration: ns}
	for _, f := range q.fields {
		for v := range f.Values(s) {
			if word := f.Place.Info().Empty; word != "" && v.Str() == "" {
				v = otlpdata.StringValue(word)
			}
			out.fields = append(out.fields, otlpdata.KeyValue{Key: shownName(f), Value: v})
			break
		}
	}
	return out
}

// size returns the approximate number of bytes of the encoded spans.
func (m *match) size() int64 {
	const perSpan, perField = 128, 48
	n := 0
	for _, set := range m.sets {
		n += perSpan * (1 + len(set.spans))
		for i := range set.spans {
			s := &set.spans[i]
			n += len(s.name)
			for j := range s.fields {
				n += perField + len(s.fields[j].Key) + len(s.fields[j].Value.Encoded())
			}
		}
	}
	return int64(n)
}

// shownValue returns the attribute of a group.
func shownValue(v storequery.GroupValue) otlpdata.KeyValue {
	out := otlpdata.KeyValue{Key: traceql.FormatStage(v.Of), Value: v.Value}
	var of tracestore.Operand
	switch stage := v.Of.(type) {
	case storequery.GroupBy:
		of = stage.By
	case storequery.Aggregate:
		of = stage.Of
	}
	f, ok := of.(tracestore.Field)
	switch {
	case v.Value.Kind() == otlpdata.ValueEmpty:
		out.Value = otlpdata.StringValue("nil")
	case ok && f.Place.Info().Type == tracestore.DurationField:
		out.Value = otlpdata.StringValue(time.Duration(v.Value.Double()).String())
	case ok && f.Place.Info().Empty != "" && v.Value.Str() == "":
		out.Value = otlpdata.StringValue(f.Place.Info().Empty)
	}
	return out
}

// appendJSON appends a TraceSearchMetadata of tempo.proto (tempopb). It contains the first set of
// spans twice: in the list spanSets, and separately for older clients.
func (m *match) appendJSON(dst []byte) []byte {
	m.set = m.sets[0].appendJSON(m.set[:0])
	s := &m.summary
	dst = append(dst, `{"traceID":"`...)
	dst = append(append(dst, s.ID.String()...), '"')
	dst = httpapi.AppendString(dst, "rootServiceName", s.RootService)
	dst = httpapi.AppendString(dst, "rootTraceName", s.RootName)
	dst = httpapi.AppendNanos(dst, "startTimeUnixNano", s.Start)
	dst = httpapi.AppendInt(dst, "durationMs", int(durationMillis(s)))
	dst = append(httpapi.AppendMember(dst, "spanSet"), m.set...)
	dst = append(append(httpapi.AppendMember(dst, "spanSets"), '['), m.set...)
	for i := range m.sets[1:] {
		dst = m.sets[1+i].appendJSON(append(dst, ','))
	}
	dst = append(dst, `],"serviceStats":{`...)
	for i := range s.Services {
		svc := &s.Services[i]
		dst = append(otlpdata.AppendJSONString(httpapi.Comma(dst, i), svc.Name), `:{"spanCount":`...)
		dst = strconv.AppendInt(dst, int64(svc.Spans), 10)
		dst = append(httpapi.AppendInt(dst, "errorCount", svc.Errors), '}')
	}
	return append(dst, "}}"...)
}

// durationMillis returns the duration of a trace in milliseconds.
func durationMillis(s *tracestore.Summary) uint64 {
	return min((s.End-s.Start)/uint64(time.Millisecond), math.MaxUint32)
}

func (s *foundSet) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"spans":[`...)
	for i := range s.spans {
		dst = s.spans[i].appendJSON(httpapi.Comma(dst, i))
	}
	dst = strconv.AppendInt(append(dst, `],"matched":`...), int64(s.matched), 10)
	for i, v := range s.values {
		if i == 0 {
			dst = append(httpapi.AppendMember(dst, "attributes"), '[')
		}
		dst = otlpjson.AppendAttribute(httpapi.Comma(dst, i), v.Key, v.Value)
	}
	if len(s.values) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func (s *foundSpan) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"spanID":"`...)
	dst = append(hex.AppendEncode(dst, s.id[:]), '"')
	dst = httpapi.AppendString(dst, "name", s.name)
	dst = httpapi.AppendNanos(dst, "startTimeUnixNano", s.start)
	dst = append(httpapi.AppendNanos(dst, "durationNanos", s.duration), `,"attributes":[`...)
	for i, f := range s.fields {
		dst = otlpjson.AppendAttribute(httpapi.Comma(dst, i), f.Key, f.Value)
	}
	return append(dst, "]}"...)
}

// maxShownFields is the maximum number of fields shown for a span.
const maxShownFields = 32

// shownFields returns the fields that a search names, except fields of the trace and fields that
// are shown for every span.
func shownFields(q *traceql.Query) (fields []tracestore.Field) {
	show := func(f tracestore.Field) {
		if f.Parent || !f.Place.OfSpan() || f.Place == tracestore.Name || f.Place == tracestore.Duration {
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
	case storequery.Relation: // fields of ancestors or other relatives are not shown
		eachField(s.Right, visit)
	case storequery.Pipeline:
		eachField(s.Set, visit)
		for _, stage := range s.Stages {
			if refine, ok := stage.(storequery.Refine); ok {
				eachField(refine.Set, visit)
			}
		}
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
