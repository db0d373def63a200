package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// spanRows selects rows of the table of spans. The server counts most of them. Two kinds are
// examined here, one by one: spans for which the server cannot decide whether they match, and spans
// with several values where the server counts only one. If all are examined, they are read as a
// whole.
type spanRows struct {
	all      string // condition of all rows
	examined string // condition for the rows that are examined here
}

// counted returns the condition of the rows that the server counts.
func (r spanRows) counted() string {
	if r.examined == where.Never {
		return r.all
	}
	return r.all + " AND NOT (" + r.examined + ")"
}

// toExamine returns the condition of the rows that are examined here.
func (r spanRows) toExamine() string { return r.all + " AND (" + r.examined + ")" }

// undecided returns the condition for rows for which the server cannot decide a condition, or
// where.Always if whole spans are needed.
func undecided(c *where.Condition) string {
	switch {
	case c.Exact:
		return where.Never
	case c.Whole:
		return where.Always
	}
	return "NOT (" + c.Sure + ")"
}

// rowColumns are the needed columns of examined rows.
type rowColumns struct {
	properties map[tracestore.Place]struct{}
	keys       []string // attributes; see keysOf
	someKeys   string   // condition on a key x of further attributes, or where.Never
	allKeys    bool     // all attributes
}

// add adds fields.
func (c *rowColumns) add(fields ...tracestore.Field) {
	for _, f := range fields {
		switch {
		case f.Place.HasKey():
			c.keys = append(c.keys, keysOf(f)...)
		case f.Place == tracestore.AnyText:
			for _, p := range tracestore.TextPlaces() {
				c.properties[p] = struct{}{}
			}
			c.allKeys = true
		default:
			c.properties[f.Place] = struct{}{}
		}
	}
}

// sql returns the list of the columns that spanRow.targets receives, without the conditions at its
// end.
func (c *rowColumns) sql() string {
	column := func(p tracestore.Place, name, absent string) string {
		if _, ok := c.properties[p]; ok {
			return name
		}
		return absent
	}
	out := []string{"start", "duration", column(tracestore.EventName, "arrayMap(x -> toString(x), event_names)", "emptyArrayString()"),
		column(tracestore.ParentID, "root", "toUInt8(1)"), "trace_id"}
	for i := range tracestore.Places() {
		switch name, isText := where.Column(tracestore.Place(i)); tracestore.Place(i) {
		case tracestore.Service, tracestore.Name, tracestore.Status: // always needed
			out = append(out, "toString("+name+")")
		default:
			if isText {
				out = append(out, column(tracestore.Place(i), "toString("+name+")", "''"))
			}
		}
	}
	wanted := where.Never
	if len(c.keys) > 0 {
		wanted = "x IN (" + where.Texts(c.keys) + ")"
	}
	if wanted = where.Any(wanted, c.someKeys); c.allKeys {
		wanted = where.Always
	}
	for _, p := range rows.Pairs() {
		if wanted == where.Never {
			none := map[rows.Pair]string{rows.PairInt: "emptyArrayInt64()", rows.PairFloat: "emptyArrayFloat64()"}[p]
			if none == "" {
				none = "emptyArrayString()"
			}
			out = append(out, "emptyArrayString()", none)
			continue
		}
		out = append(out, "arrayMap(x -> toString(x), arrayFilter(x -> "+wanted+", "+p.Keys()+"))",
			"arrayFilter((y, x) -> "+wanted+", "+p.Values()+", "+p.Keys()+")")
	}
	return strings.Join(out, ", ")
}

// someID stands for the id of a parent in conditions for which only its presence counts.
var someID = otlpdata.SpanID{1}

// spanRow is a row of the table of spans. Its memory is reused.
type spanRow struct {
	start, duration               uint64
	texts                         []string // by place
	eventNames                    []string
	root                          uint8
	trace                         string
	originKeys, strKeys, textKeys []string
	intKeys, floatKeys, others    []string
	origins, strs, longs          []string
	ints                          []int64
	floats                        []float64
	otherTexts                    []string
	sure, mayBeSelected, selected uint8

	attributes []rowAttribute
	span       otlpdata.Span
	resource   otlpdata.Resource
	scope      otlpdata.Scope
}

// rowAttribute is an attribute with the prefix of its place in the key.
type rowAttribute struct {
	otlpdata.KeyValue
	// textOnly marks a value that is neither a string nor a number nor an array. KeyValue holds its
	// text.
	textOnly bool
}

// targets returns where db.Rows.Scan puts the columns of rowColumns.sql, and then the conditions.
func (r *spanRow) targets() []any {
	out := []any{&r.start, &r.duration, &r.eventNames, &r.root, &r.trace}
	r.texts = make([]string, len(tracestore.Places()))
	for i := range r.texts {
		if _, isText := where.Column(tracestore.Place(i)); isText {
			out = append(out, &r.texts[i])
		}
	}
	return append(out, &r.originKeys, &r.origins, &r.strKeys, &r.strs, &r.textKeys, &r.longs,
		&r.intKeys, &r.ints, &r.floatKeys, &r.floats, &r.others, &r.otherTexts, &r.sure, &r.mayBeSelected, &r.selected)
}

// build builds the span from the columns.
func (r *spanRow) build() tracestore.Span {
	r.attributes = r.attributes[:0]
	add := func(key string, v otlpdata.Value, textOnly bool) {
		if rows.OfElement(key) { // part of an array
			return
		}
		r.attributes = append(r.attributes, rowAttribute{otlpdata.KeyValue{Key: key, Value: v}, textOnly})
	}
	strings := func(keys, values []string) {
		for i := range min(len(keys), len(values)) {
			add(keys[i], otlpdata.StringValue(values[i]), false)
		}
	}
	strings(r.originKeys, r.origins)
	strings(r.strKeys, r.strs)
	strings(r.textKeys, r.longs)
	for i := range min(len(r.intKeys), len(r.ints)) {
		add(r.intKeys[i], otlpdata.IntValue(r.ints[i]), false)
	}
	for i := range min(len(r.floatKeys), len(r.floats)) {
		add(r.floatKeys[i], otlpdata.DoubleValue(r.floats[i]), false)
	}
	for i := range min(len(r.others), len(r.otherTexts)) {
		if text := r.otherTexts[i]; text != "" && text[0] == '[' {
			add(r.others[i], otlpdata.ParseJSON(text), false)
		} else {
			add(r.others[i], otlpdata.StringValue(text), true)
		}
	}
	r.resource = otlpdata.Resource{Service: r.texts[tracestore.Service], Attributes: r.place(tracestore.ResourceAttribute)}
	r.scope = otlpdata.Scope{Name: r.texts[tracestore.ScopeName], Version: r.texts[tracestore.ScopeVersion],
		Attributes: r.place(tracestore.ScopeAttribute)}
	r.span = otlpdata.Span{Start: r.start, End: r.start + r.duration, Name: r.texts[tracestore.Name],
		Kind: otlpdata.KindOf(r.texts[tracestore.Kind]), StatusCode: statusOf(r.texts[tracestore.Status]),
		StatusMessage: r.texts[tracestore.StatusMessage], Attributes: r.place(tracestore.SpanAttribute)}
	copy(r.span.TraceID[:], r.trace)
	if r.root == 0 {
		r.span.ParentID = someID
	}
	for _, name := range r.eventNames {
		r.span.Events = append(r.span.Events, otlpdata.Event{Name: name})
	}
	if kvs := r.place(tracestore.EventAttribute); len(kvs) > 0 {
		if len(r.span.Events) == 0 { // their names are not needed
			r.span.Events = []otlpdata.Event{{}}
		}
		r.span.Events[0].Attributes = kvs
	}
	if kvs := r.place(tracestore.LinkAttribute); len(kvs) > 0 {
		r.span.Links = []otlpdata.Link{{Attributes: kvs}}
	}
	return tracestore.Span{Resource: &r.resource, Scope: &r.scope, Span: &r.span}
}

// place returns the attributes of a place, without prefix.
func (r *spanRow) place(p tracestore.Place) (kvs []otlpdata.KeyValue) {
	prefix := where.Prefixes(p)[0]
	for i := range r.attributes {
		if key, ok := strings.CutPrefix(r.attributes[i].Key, prefix); ok {
			kvs = append(kvs, otlpdata.KeyValue{Key: key, Value: r.attributes[i].Value})
		}
	}
	return kvs
}

func statusOf(name string) int32 {
	for _, code := range []int32{otlpdata.StatusOK, otlpdata.StatusError} {
		if otlpdata.StatusName(code) == name {
			return code
		}
	}
	return 0
}

// matches is tracestore.Match for a row.
func (r *spanRow) matches(e tracestore.Expr, s tracestore.Span) bool {
	switch e := e.(type) {
	case tracestore.And:
		for _, part := range e {
			if !r.matches(part, s) {
				return false
			}
		}
		return true
	case tracestore.Or:
		for _, part := range e {
			if r.matches(part, s) {
				return true
			}
		}
		return false
	case tracestore.Not:
		return !r.matches(e.Expr, s)
	case tracestore.Cond:
		if e.Field.Place.HasKey() {
			return r.hasValue(e)
		}
		if e.Field.Place == tracestore.AnyText {
			return r.hasText(e, s)
		}
	}
	return tracestore.Match(e, s)
}

// hasValue reports whether a condition on an attribute holds for one of its values.
func (r *spanRow) hasValue(c tracestore.Cond) bool {
	for _, prefix := range where.Prefixes(c.Field.Place) {
		for i := range r.attributes {
			if key, ok := strings.CutPrefix(r.attributes[i].Key, prefix); ok && key == c.Field.Key && r.attributes[i].meets(c) {
				return true
			}
		}
	}
	return false
}

// hasText reports whether a condition holds for one of the texts of the row.
func (r *spanRow) hasText(c tracestore.Cond, s tracestore.Span) bool {
	for i := range r.attributes {
		if r.attributes[i].meets(c) {
			return true
		}
	}
	for _, p := range tracestore.TextPlaces() {
		if c.Field.Place = p; tracestore.Match(c, s) {
			return true
		}
	}
	return false
}

func (a *rowAttribute) meets(c tracestore.Cond) bool {
	if !a.textOnly {
		return c.Holds(a.Value)
	}
	switch c.Value.Kind {
	case otlpdata.ValueString:
		return false
	case otlpdata.ValueBool: // or bytes with this text, because the column does not store the type
		text := a.Value.Str()
		return (text == "true" || text == "false") && c.Holds(otlpdata.BoolValue(text == "true"))
	}
	return comparesText(c) && c.Holds(a.Value)
}

// comparesText reports whether a condition can hold for values that are neither strings nor
// numbers, by comparing their text.
func comparesText(c tracestore.Cond) bool {
	switch c.Op {
	case tracestore.Exists, tracestore.Like:
		return true
	case tracestore.Eq, tracestore.Ne:
		return !c.Value.IsNumber
	}
	return false
}

// rowBytes is the maximum memory of an examined row, except long values, which are limited when
// spans are received.
const rowBytes = 64 << 10

// examine passes the matching rows that the server does not count to take.
func (a *aggregation) examine(ctx context.Context, r spanRows, columns *rowColumns, take func(s tracestore.Span, selected bool)) error {
	switch r.examined {
	case where.Never:
		return nil
	case where.Always:
		return a.examineWhole(ctx, r, take)
	}
	memory, err := tracestore.Reserve(ctx, rowBytes)
	if err != nil {
		return err
	}
	defer memory.Release()
	sql := fmt.Sprintf("SELECT %s, toUInt8(%s), toUInt8(%s), toUInt8(%s) FROM %s WHERE %s",
		columns.sql(), a.cond.Sure, a.mayBeSelected, a.selected, a.table, r.toExamine())
	row := new(spanRow)
	return a.each(ctx, sql, row.targets(), func() error {
		a.scanned++
		s := row.build()
		if row.sure == 0 && !row.matches(a.query.Where, s) {
			return nil
		}
		selected := row.selected != 0 || row.mayBeSelected != 0 && row.matches(a.want.Facets.Selection.Where, s)
		if err := ctx.Err(); err != nil { // conditions may be wrong, see tracestore.WithContext
			return err
		}
		take(s, selected)
		return nil
	})
}

// examineWhole is like examine, but reads whole spans, from the table of payload.
func (a *aggregation) examineWhole(ctx context.Context, r spanRows, take func(s tracestore.Span, selected bool)) error {
	condition := where.Window(a.from, a.to) + " AND (trace_id, start) GLOBAL IN (SELECT trace_id, start FROM " + a.table + " WHERE " +
		r.toExamine() + ")"
	err := a.store.eachSpan(ctx, a.query.Tenant, condition, func(s tracestore.Span) error {
		a.scanned++
		if !tracestore.Match(a.query.Where, s) {
			return nil
		}
		selected := a.isSelected(s)
		if err := ctx.Err(); err != nil { // conditions may be wrong, see tracestore.WithContext
			return err
		}
		take(s, selected)
		return nil
	})
	damage, err := tracestore.DamageOf(err)
	a.reasons.Add(damage...)
	return err
}

// isSelected reports whether a span belongs to the selection of facets.
func (a *aggregation) isSelected(s tracestore.Span) bool {
	selection := a.want.Facets.Selection
	if a.facets == nil || selection == nil {
		return false
	}
	from, to, ok := tracestore.Query{From: selection.From, To: selection.To}.Window()
	return ok && from <= s.Start && s.Start <= to && tracestore.Match(selection.Where, s)
}
