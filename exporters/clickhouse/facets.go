package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// defaultKeys is the condition on keys of attributes that are counted if a query names no fields.
func defaultKeys(key string) string {
	return "startsWith(" + key + ", " + where.Text(rows.PrefixSpan) + ") OR startsWith(" + key + ", " + where.Text(rows.PrefixResource) + ")"
}

// attributeKey is the name of a key in statements with a row for each attribute.
const attributeKey = "attribute_key"

// severalValues returns the condition for spans that may have several values of one of the facet
// fields; no fields means the default fields.
func (a *aggregation) severalValues(fields []tracestore.Field) string {
	if len(fields) > 0 {
		return severalOf(fields)
	}
	return hasRepeated(defaultKeys("x"))
}

// hasRepeated returns the condition that a key x of a span occurs twice and meets a condition.
func hasRepeated(condition string) string {
	keys := "arrayFilter(x -> " + condition + ", " + allKeys() + ")"
	return "length(" + keys + ") != arrayUniq(" + keys + ")"
}

// severalOf returns the condition for spans that may have several values of one of some fields,
// which the server cannot count.
func severalOf(fields []tracestore.Field) string {
	var conditions, keys []string
	for _, f := range fields {
		switch {
		case f.Place == tracestore.ParentID:
			return where.Always // the table of spans does not have it
		case f.Place == tracestore.AnyAttribute || f.Place == tracestore.EventName:
			conditions = append(conditions, occurrences(f)+" > 1")
		case f.Place.HasKey():
			keys = append(keys, keysOf(f)...)
		}
	}
	if len(keys) > 0 {
		conditions = append(conditions, hasRepeated("x IN ("+where.Texts(keys)+")"))
	}
	return where.Any(conditions...)
}

// countFacets counts the facets of rows whose spans have at most one value of each field. It adds
// the columns that other rows need.
func (a *aggregation) countFacets(ctx context.Context, set string, t total, columns *rowColumns) error {
	fields := a.want.Facets.Fields
	if len(fields) == 0 {
		fields = tracestore.DefaultFacets()
		columns.someKeys = defaultKeys("x")
	}
	columns.add(fields...)
	named := make(map[string][]tracestore.Field)
	var all []func(context.Context) error
	if columns.someKeys != where.Never {
		for _, p := range rows.Pairs() {
			all = append(all, func(ctx context.Context) error {
				return a.countPair(ctx, set, attributeKeys{condition: defaultKeys(attributeKey)}, p)
			})
		}
	}
	var attributes, texts []tracestore.Field
	for _, f := range fields {
		if _, isText := where.Column(f.Place); isText {
			texts = append(texts, f)
			continue
		}
		if !f.Place.HasKey() {
			all = append(all, func(ctx context.Context) error { return a.countProperty(ctx, set, f, t) })
			continue
		}
		attributes = append(attributes, f)
		for _, key := range keysOf(f) {
			named[key] = append(named[key], f)
		}
	}
	if len(texts) > 0 {
		all = append(all, func(ctx context.Context) error { return a.countTexts(ctx, set, texts, t) })
	}
	for _, p := range rows.Pairs() {
		var keys []string
		for _, f := range attributes {
			keys = append(keys, where.Keys(p, f)...)
		}
		if len(keys) == 0 {
			continue
		}
		slices.Sort(keys)
		of := attributeKeys{condition: attributeKey + " IN (" + where.Texts(slices.Compact(keys)) + ")", fields: named}
		all = append(all, func(ctx context.Context) error { return a.countPair(ctx, set, of, p) })
	}
	return together(ctx, all...)
}

// countTexts counts the values of properties that are columns of texts, in one pass.
func (a *aggregation) countTexts(ctx context.Context, set string, fields []tracestore.Field, t total) error {
	counters, rest := make([]*storequery.FieldCounter, len(fields)), make([]uint64, len(fields))
	var columns, texts, numbers []string
	for i, f := range fields {
		counters[i], rest[i] = a.facets.Field(f), t.spans
		column, _ := where.Column(f.Place)
		columns, texts, numbers = append(columns, column), append(texts, "toString("+column+")"), append(numbers, strconv.Itoa(i))
	}
	list := strings.Join(columns, ", ")
	sql := fmt.Sprintf("SELECT toUInt8(field), %s AS value_text, sum(spans) AS n, sum(selected) FROM ("+
		"SELECT %[2]s, count() AS spans, countIf(%[3]s) AS selected FROM %[4]s WHERE %[5]s GROUP BY %[2]s) "+
		"ARRAY JOIN [%[6]s] AS field, [%[7]s] AS field_text GROUP BY field, value_text "+
		"ORDER BY n DESC, field, value_text LIMIT %[8]d BY field",
		shortText("field_text"), list, a.selected, a.table, set, strings.Join(numbers, ", "), strings.Join(texts, ", "),
		storequery.MaxFacetDistinct)
	var field uint8
	v := valueCount{form: formText}
	err := a.eachFacet(ctx, sql, []any{&field, &v.text, &v.spans, &v.selected}, func() error {
		if int(field) >= len(fields) || counters[field] == nil {
			return nil
		}
		rest[field] -= min(v.spans, rest[field])
		return v.addTo(counters[field])
	})
	a.facetMutex.Lock()
	defer a.facetMutex.Unlock()
	for i, c := range counters {
		if c != nil {
			c.AddSpans(t.spans, t.selected)
			c.AddOther(rest[i])
		}
	}
	return err
}

// countProperty counts the values of a property that is not a column of texts.
func (a *aggregation) countProperty(ctx context.Context, set string, f tracestore.Field, t total) error {
	a.facetMutex.Lock()
	counter := a.facets.Field(f)
	a.facetMutex.Unlock()
	if counter == nil || f.Place.OfTrace() {
		return nil
	}
	form, text := fieldValue(f)
	if f.Place == tracestore.EventName || f.Place == tracestore.ErrorGroup {
		set += " AND " + form + " != '" + formAbsent + "'"
		var err error
		if t, err = a.countTotals(ctx, set); err != nil {
			return err
		}
	}
	sql := fmt.Sprintf("SELECT %s AS value_form, %s AS value_text, count() AS n, countIf(%s) FROM %s WHERE %s "+
		"GROUP BY value_form, value_text ORDER BY n DESC, value_form, value_text LIMIT %d",
		form, text, a.selected, a.table, set, storequery.MaxFacetDistinct)
	rest := t.spans
	var v valueCount
	err := a.eachFacet(ctx, sql, v.targets(), func() error {
		rest -= min(v.spans, rest)
		return v.addTo(counter)
	})
	a.facetMutex.Lock()
	defer a.facetMutex.Unlock()
	counter.AddSpans(t.spans, t.selected)
	counter.AddOther(rest)
	return err
}

// eachFacet is like each, but take may use a.facets.
func (a *aggregation) eachFacet(ctx context.Context, sql string, to []any, take func() error) error {
	return a.each(ctx, sql, to, func() error {
		a.facetMutex.Lock()
		defer a.facetMutex.Unlock()
		return take()
	})
}

// valueCount is a result row: the number of spans with a value.
type valueCount struct {
	form, text      string
	spans, selected uint64
}

func (v *valueCount) targets() []any { return []any{&v.form, &v.text, &v.spans, &v.selected} }

func (v *valueCount) addTo(counter *storequery.FieldCounter) error {
	text, ok, err := textOf(v.form, v.text)
	if err == nil && ok {
		counter.AddValue(text, v.spans, v.selected)
	}
	return err
}

// attributeKeys selects keys of attributes.
type attributeKeys struct {
	condition string // on attributeKey
	// fields are the fields of each key. nil: the key of a span or resource attribute is a field.
	fields map[string][]tracestore.Field
}

// of returns the fields that a key belongs to.
func (k *attributeKeys) of(key string) []tracestore.Field {
	if k.fields != nil {
		return k.fields[key]
	}
	for _, p := range []tracestore.Place{tracestore.SpanAttribute, tracestore.ResourceAttribute} {
		if prefix := where.Prefixes(p)[0]; len(key) >= len(prefix) && key[:len(prefix)] == prefix {
			return []tracestore.Field{{Place: p, Key: key[len(prefix):]}}
		}
	}
	return nil
}

// keyCount holds the counts of a key: its values, and the spans with them.
type keyCount struct {
	values          int
	spans, selected uint64
}

// countPair counts the values of attributes in a pair of columns. Values that occur equally often
// are sorted by a hash, because many occur once, and texts take longer to compare.
func (a *aggregation) countPair(ctx context.Context, set string, keys attributeKeys, p rows.Pair) error {
	var key string
	var v valueCount
	var text string
	v.form, text = pairValue(p, "attribute_value")
	sql := fmt.Sprintf("SELECT toString(%[1]s) AS k, %[2]s AS value_text, count() AS n, countIf(%[3]s) FROM %[4]s "+
		"ARRAY JOIN %[5]s AS %[1]s, %[6]s AS attribute_value WHERE %[7]s AND (%[8]s) GROUP BY k, value_text "+
		"ORDER BY n DESC, cityHash64(value_text), k, value_text LIMIT %[9]d BY k",
		attributeKey, text, a.selected, a.table, p.Keys(), p.Values(), set, keys.condition, storequery.MaxFacetDistinct)
	counted := make(map[string]*keyCount)
	err := a.eachFacet(ctx, sql, []any{&key, &v.text, &v.spans, &v.selected}, func() error {
		for _, f := range keys.of(key) {
			counter := a.facets.Field(f)
			if counter == nil {
				continue
			}
			if counted[key] == nil {
				counted[key] = new(keyCount)
			}
			if err := v.addTo(counter); err != nil {
				return err
			}
		}
		if c := counted[key]; c != nil {
			c.values++
			c.spans, c.selected = c.spans+v.spans, c.selected+v.selected
		}
		return nil
	})
	if err != nil {
		return err
	}
	var cut []string // keys with other values
	a.facetMutex.Lock()
	for key, c := range counted {
		if c.values >= storequery.MaxFacetDistinct {
			cut = append(cut, key)
			continue
		}
		a.addKey(keys.of(key), c.spans, c.selected, 0)
	}
	a.facetMutex.Unlock()
	if len(cut) == 0 {
		return nil
	}
	slices.Sort(cut)
	sql = fmt.Sprintf("SELECT toString(%[1]s) AS k, count(), countIf(%[2]s) FROM %[3]s ARRAY JOIN %[4]s AS %[1]s WHERE %[5]s AND "+
		"%[1]s IN (%[6]s) GROUP BY k", attributeKey, a.selected, a.table, p.Keys(), set, where.Texts(cut))
	return a.eachFacet(ctx, sql, []any{&key, &v.spans, &v.selected}, func() error {
		a.addKey(keys.of(key), v.spans, v.selected, v.spans-min(counted[key].spans, v.spans))
		return nil
	})
}

// addKey counts the spans with a key, and how many of them have an uncounted value.
func (a *aggregation) addKey(fields []tracestore.Field, spans, selected, other uint64) {
	for _, f := range fields {
		if counter := a.facets.Field(f); counter != nil {
			counter.AddSpans(spans, selected)
			counter.AddOther(other)
		}
	}
}

// countGroups counts the groups of rows whose spans have at most one value of each field.
func (a *aggregation) countGroups(ctx context.Context, set string) error {
	var sum tracestore.Group
	n := 0
	var g groupRow
	err := a.each(ctx, a.groupStatement(set), g.targets(), func() error {
		n++
		out, err := g.addTo(a.groups)
		sum.Add(&out)
		return err
	})
	if err != nil || n < storequery.MaxGroupsCounted { // each span is in one group
		a.groups.AddTotal(&sum)
		return err
	}
	var all groupRow
	sql := fmt.Sprintf("SELECT %s FROM (SELECT %s FROM %s WHERE %s GROUP BY bucket, part)",
		groupColumns(), a.groupCounts(), a.table, set)
	if err := a.one(ctx, sql, all.counted()...); err != nil {
		return err
	}
	total, err := all.group(a.groups.Parts())
	if err != nil {
		return err
	}
	a.groups.AddTotal(&total)
	a.groups.AddOther(all.spans - min(sum.Durations.Count(), all.spans))
	return nil
}

// groupStatement returns the statement that counts the largest groups.
func (a *aggregation) groupStatement(set string) string {
	var columns [2 * tracestore.MaxGroupFields]string
	for i := range tracestore.MaxGroupFields {
		form, text := "'"+formAbsent+"'", "''"
		if i < len(a.want.Groups.By) {
			form, text = fieldValue(a.want.Groups.By[i])
		}
		columns[2*i], columns[2*i+1] = form, text
	}
	return fmt.Sprintf("SELECT form1, text1, form2, text2, %s FROM ("+
		"SELECT %s AS form1, %s AS text1, %s AS form2, %s AS text2, %s FROM %s WHERE %s "+
		"GROUP BY form1, text1, form2, text2, bucket, part) "+
		"GROUP BY form1, text1, form2, text2 ORDER BY spans DESC, form1, text1, form2, text2 LIMIT %d",
		groupColumns(), columns[0], columns[1], columns[2], columns[3], a.groupCounts(), a.table, set, storequery.MaxGroupsCounted)
}

// groupCounts returns the columns that count spans by duration bucket and part of the window.
func (a *aggregation) groupCounts() string {
	part := "toUInt16(0)"
	if p := a.groups.Parts(); p.N > 0 {
		part = fmt.Sprintf("toUInt16(intDiv(toUInt64(start - %d), %d))", p.From, p.Length)
	}
	return where.Bucket("duration") + " AS bucket, " + part + " AS part, count() AS n, countIf(status = 'error') AS failed, " +
		"sum(toUInt128(duration)) AS time, min(start) AS first_start, max(start) AS last_start"
}

// groupColumns returns the sums and lists of the columns of groupCounts, in the order of
// groupRow.counted.
func groupColumns() string {
	return "sum(n) AS spans, sum(failed), " + saturated("sum(time)") +
		", min(first_start), max(last_start), groupArray(bucket), groupArray(part), groupArray(n)"
}

// groupRow is a result row: the spans of a group.
type groupRow struct {
	forms, texts       [tracestore.MaxGroupFields]string
	spans, errors, sum uint64
	first, last        uint64
	buckets, parts     []uint16
	counts             []uint64
}

func (g *groupRow) targets() []any {
	return append([]any{&g.forms[0], &g.texts[0], &g.forms[1], &g.texts[1]}, g.counted()...)
}

func (g *groupRow) counted() []any {
	return []any{&g.spans, &g.errors, &g.sum, &g.first, &g.last, &g.buckets, &g.parts, &g.counts}
}

// group returns the counts, without values.
func (g *groupRow) group(parts tracestore.Parts) (out tracestore.Group, err error) {
	out.Errors = g.errors
	if out.Durations, err = histogramOf(g.sum, g.buckets, g.counts); err != nil || parts.N == 0 {
		return out, err
	}
	out.First, out.Last = g.first, g.last
	if len(g.parts) != len(g.counts) {
		return out, tracestore.Damaged(fmt.Sprintf("group with %d parts and %d counts", len(g.parts), len(g.counts)), nil)
	}
	out.Parts = make([]uint64, parts.N)
	for i, part := range g.parts {
		if int(part) >= parts.N {
			return out, tracestore.Damaged(fmt.Sprintf("group with part %d of %d", part, parts.N), nil)
		}
		out.Parts[part] += g.counts[i]
	}
	return out, nil
}

func (g *groupRow) addTo(counter *storequery.GroupCounter) (tracestore.Group, error) {
	out, err := g.group(counter.Parts())
	if err != nil {
		return out, err
	}
	for i := range out.Values {
		if out.Values[i].Text, out.Values[i].Present, err = textOf(g.forms[i], g.texts[i]); err != nil {
			return out, err
		}
	}
	counter.AddGroup(&out)
	return out, nil
}
