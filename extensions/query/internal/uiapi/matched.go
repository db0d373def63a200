package uiapi

import (
	"cmp"
	"slices"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	maxFieldValues   = 3  // for each trace and field
	maxSelectedField = 32 // fields of `select`
	// maxMatchedSpans is the maximum number of spans that are read for one search to find the
	// matching ones. Reading takes about 1 us per span, so it delays the list by at most about one
	// step of the search. Further traces are listed without their matching spans.
	maxMatchedSpans = 200_000
)

// matchReader finds the matching spans of the traces that a search returns. The store returns only
// summaries, so the traces are reread.
type matchReader struct {
	set      storequery.SpanSet
	from, to uint64
	fields   []tracestore.Field // of `select`
	names    []string           // of fields, as in facets
	read     int                // spans
}

func newMatchReader(q traceql.Query, w core.Window) *matchReader {
	m := &matchReader{set: q.Set}
	m.from, m.to, _ = tracestore.Query{From: w.From, To: w.To}.Window()
	for _, f := range q.Select {
		if len(m.fields) < maxSelectedField && !slices.Contains(m.fields, f) {
			m.fields = append(m.fields, f)
			m.names = append(m.names, traceql.FormatField(f))
		}
	}
	return m
}

// match is the matching spans of a trace.
type match struct {
	spans  route.Matched
	names  []string
	fields [][]fieldValue // by name; the values of the first spans with the field
}

type fieldValue struct {
	text string
	at   route.SpanKey // the first span with the value
}

func (a fieldValue) compare(b fieldValue) int {
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.text, b.text))
}

// find returns the matching spans of each of several traces, or nil if there are too many spans to
// read, if the memory for queries is exhausted, or if parts of the trace are damaged.
func (m *matchReader) find(slot *core.Slot, traces []*tracestore.Summary) ([]*match, error) {
	before := m.read
	found, at := make([]*match, len(traces)), make(map[otlpdata.TraceID]int)
	var ids []otlpdata.TraceID
	for i, s := range traces {
		if m.read+s.Spans <= maxMatchedSpans && s.Spans <= slot.Limits().TraceSize {
			m.read += s.Spans
			found[i] = &match{names: m.names, fields: make([][]fieldValue, len(m.fields))}
			ids, at[s.ID] = append(ids, s.ID), i
		}
	}
	if len(ids) == 0 {
		return found, nil
	}
	ofTrace := slices.ContainsFunc(m.fields, func(f tracestore.Field) bool { return f.Place.OfTrace() })
	damage, err := slot.VisitSelected(ids, m.set, ofTrace, func(id otlpdata.TraceID, s tracestore.Span) error {
		if s.Start >= m.from && s.Start <= m.to {
			found[at[id]].addSpan(s, m.fields)
		}
		return nil
	})
	switch {
	case damage.Complete() && !tracestore.IsOutOfMemory(err):
		return found, err
	case len(traces) == 1:
		return []*match{nil}, nil
	}
	m.read = before
	for i := range traces { // one of them is damaged, or too large
		one, err := m.find(slot, traces[i:i+1])
		if err != nil {
			return nil, err
		}
		found[i] = one[0]
	}
	return found, nil
}

func (m *match) addSpan(s tracestore.Span, fields []tracestore.Field) {
	at := route.SpanKey{Start: s.Start, ID: s.SpanID}
	m.spans.Add(at)
	for i, f := range fields {
		for v := range f.Values(s) {
			text := f.Place.Info().Shown(v.AsString())
			m.fields[i] = addValue(m.fields[i], fieldValue{storequery.FacetText(text), at})
		}
	}
}

// addValue adds a value to a list of distinct ones.
func addValue(list []fieldValue, v fieldValue) []fieldValue {
	if i := slices.IndexFunc(list, func(o fieldValue) bool { return o.text == v.text }); i >= 0 {
		if list[i].compare(v) <= 0 {
			return list
		}
		list = slices.Delete(list, i, i+1)
	}
	return route.InsertFirst(list, v, fieldValue.compare, maxFieldValues)
}

// appendJSON appends members of an object, each after a comma. A nil match has none.
func (m *match) appendJSON(dst []byte) []byte {
	if m == nil {
		return dst
	}
	dst = m.spans.AppendJSON(dst)
	if len(m.names) == 0 {
		return dst
	}
	dst = append(dst, `,"fields":{`...)
	for i, name := range m.names {
		dst = append(otlpdata.AppendJSONString(httpapi.Comma(dst, i), name), ":["...)
		for j, v := range m.fields[i] {
			dst = otlpdata.AppendJSONString(httpapi.Comma(dst, j), v.text)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}
