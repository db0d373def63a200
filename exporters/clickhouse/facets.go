package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// The names of a key and its value in statements with a row for each attribute.
const attributeKey, valueOfKey = "attribute_key", "attribute_value"

// severalValues returns the condition for spans that may have several values of one of the facet
// fields; no fields means the default fields.
func (a *aggregation) severalValues(fields []tracestore.Field) string {
	if len(fields) > 0 {
		return severalOf(fields)
	}
	return "repeated"
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
		repeats := where.Repeats("x IN (" + where.Texts(keys) + ")")
		if !slices.ContainsFunc(keys, func(key string) bool { return (&attributeKeys{}).of(key) == nil }) {
			repeats = "repeated AND " + repeats
		}
		conditions = append(conditions, repeats)
	}
	return where.Any(conditions...)
}

// countFacets counts the facets of rows whose spans have at most one value of each field. It adds
// the columns that other rows need.
func (a *aggregation) countFacets(ctx context.Context, set string, t total, columns *rowColumns) error {
	fields := a.want.Facets.Fields
	if len(fields) == 0 {
		fields = tracestore.DefaultFacets()
		columns.someKeys = where.OfSpanOrResource("x")
	}
	columns.add(fields...)
	named := make(map[string][]tracestore.Field)
	var all []func(context.Context) error
	if columns.someKeys != where.Never {
		for _, p := range rows.Pairs() {
			all = append(all, func(ctx context.Context) error {
				return a.countPair(ctx, set, t, attributeKeys{condition: where.CountedKey(attributeKey)}, p)
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
		for _, prefix := range where.Prefixes(f.Place) {
			for _, key := range []string{prefix + f.Key, rows.ElementPrefix(prefix) + f.Key} {
				named[key] = append(named[key], f)
			}
		}
	}
	if len(texts) > 0 {
		all = append(all, func(ctx context.Context) error { return a.countTexts(ctx, set, texts, t) })
	}
	for _, p := range rows.Pairs() {
		var keys []string
		for _, f := range attributes {
			keys = append(keys, where.Counted(p, f)...)
		}
		if len(keys) == 0 {
			continue
		}
		slices.Sort(keys)
		of := attributeKeys{condition: attributeKey + " IN (" + where.Texts(slices.Compact(keys)) + ")", fields: named}
		all = append(all, func(ctx context.Context) error { return a.countPair(ctx, set, t, of, p) })
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
		prefix := where.Prefixes(p)[0]
		for _, prefix := range []string{prefix, rows.ElementPrefix(prefix)} {
			if name, ok := strings.CutPrefix(key, prefix); ok {
				return []tracestore.Field{{Place: p, Key: name}}
			}
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
func (a *aggregation) countPair(ctx context.Context, set string, t total, keys attributeKeys, p rows.Pair) error {
	var key string
	var v valueCount
	var text string
	v.form, text = pairValue(p, valueOfKey)
	from := fmt.Sprintf("%s ARRAY JOIN %s AS %s, %s AS %s WHERE %s AND (%s)",
		a.table, p.Keys(), attributeKey, p.Values(), valueOfKey, set, keys.condition)
	spans, selected := "count()", "countIf("+a.selected+")"
	if p == rows.PairOrigin { // Many spans have the same resource and scope.
		spans, selected = "sum(spans)", "sum(selected)"
		from = fmt.Sprintf("(SELECT %[1]s AS origin_keys, %[2]s AS origin_values, count() AS spans, countIf(%[3]s) AS selected FROM %[4]s "+
			"WHERE %[5]s GROUP BY %[1]s, %[2]s) ARRAY JOIN origin_keys AS %[6]s, origin_values AS %[7]s WHERE %[8]s",
			p.Keys(), p.Values(), a.selected, a.table, set, attributeKey, valueOfKey, keys.condition)
	}
	isCounted, err := a.withoutIDs(ctx, from, t, p)
	if err != nil {
		return err
	}
	if isCounted != where.Always {
		text = "if(is_counted, " + text + ", '')"
	}
	sql := fmt.Sprintf("SELECT toString(%[1]s) AS k, toUInt8(%[2]s) AS is_counted, %[3]s AS value_text, %[4]s AS n, %[5]s "+
		"FROM %[6]s GROUP BY %[1]s, is_counted, value_text ORDER BY n DESC, cityHash64(value_text), k, value_text "+
		"LIMIT %[7]d BY %[1]s, is_counted",
		attributeKey, isCounted, text, spans, selected, from, storequery.MaxFacetDistinct)
	counted := make(map[string]*keyCount)
	var byValue uint8
	err = a.eachFacet(ctx, sql, []any{&key, &byValue, &v.text, &v.spans, &v.selected}, func() error {
		for _, f := range keys.of(key) {
			counter := a.facets.Field(f)
			if counter == nil {
				continue
			}
			if counted[key] == nil {
				counted[key] = new(keyCount)
			}
			if byValue == 0 {
				counter.AddOther(v.spans)
			} else if err := v.addTo(counter); err != nil {
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
		if !rows.OfElement(key) { // its array counts the spans
			a.addKey(keys.of(key), c.spans, c.selected, 0)
		}
	}
	a.facetMutex.Unlock()
	if len(cut) == 0 {
		return nil
	}
	slices.Sort(cut)
	sql = fmt.Sprintf("SELECT toString(%[1]s) AS k, count(), countIf(%[2]s) FROM %[3]s ARRAY JOIN %[4]s AS %[1]s WHERE %[5]s AND "+
		"%[1]s IN (%[6]s) GROUP BY k", attributeKey, a.selected, a.table, p.Keys(), set, where.Texts(cut))
	return a.eachFacet(ctx, sql, []any{&key, &v.spans, &v.selected}, func() error {
		other := v.spans - min(counted[key].spans, v.spans)
		if rows.OfElement(key) {
			v.spans, v.selected = 0, 0
		}
		a.addKey(keys.of(key), v.spans, v.selected, other)
		return nil
	})
}

const (
	// idSample is the number of spans among which keys of ids are found, which have more than
	// minIDs distinct values in them.
	idSample, minIDs = 100_000, storequery.MaxFacetDistinct * 5 / 4
	// otherIDs is the approximate number of ids that are counted although they are rare, so that
	// MaxFacetDistinct values are counted in all.
	otherIDs = 2 * storequery.MaxFacetDistinct
)

// withoutIDs returns the condition on the attributes that are counted by value. If a key has ids,
// which are many more than storequery.MaxFacetDistinct and hardly ever occur twice, it leaves out
// most of its values. It keeps the values that occur twice in a sample of the spans, and those that
// occur twice among the selected spans.
func (a *aggregation) withoutIDs(ctx context.Context, from string, t total, p rows.Pair) (condition string, _ error) {
	if t.spans < 2*idSample || p != rows.PairText && p != rows.PairInt && p != rows.PairFloat {
		return where.Always, nil
	}
	share := t.spans / idSample
	sampled := fmt.Sprintf("intHash64(start) %% %d = 0", share)
	_, text := pairValue(p, valueOfKey)
	sql := fmt.Sprintf("SELECT toString(%[1]s) AS k, uniq(%[2]s) AS n FROM %[3]s AND %[4]s GROUP BY %[1]s "+
		"HAVING n > %[5]d AND 2 * n > count() ORDER BY k", attributeKey, text, from, sampled, minIDs)
	var key string
	var distinct, hash uint64
	rare := make(map[string]uint64) // for each key, one of how many ids is counted although it is rare
	err := a.each(ctx, sql, []any{&key, &distinct}, func() error {
		rare[key] = distinct*share/otherIDs + 1
		return nil
	})
	if err != nil || len(rare) == 0 {
		return where.Always, err
	}
	keys := slices.Sorted(maps.Keys(rare))
	if t.selected > 0 {
		sampled = fmt.Sprintf("(%s OR intHash64(start) %% %d = 0 AND (%s))", sampled, t.selected/idSample+1, a.selected)
	}
	sql = fmt.Sprintf("SELECT toString(%[1]s) AS k, cityHash64(%[2]s) AS hash FROM %[3]s AND %[1]s IN (%[4]s) AND %[5]s "+
		"GROUP BY k, hash HAVING count() > 1 ORDER BY count() DESC, hash LIMIT %[6]d BY k",
		attributeKey, text, from, where.Texts(keys), sampled, storequery.MaxFacetDistinct)
	frequent := make(map[string][]string) // hashes of the values of each key
	err = a.each(ctx, sql, []any{&key, &hash}, func() error {
		frequent[key] = append(frequent[key], strconv.FormatUint(hash, 10))
		return nil
	})
	if err != nil {
		return "", err
	}
	cases := make([]string, len(keys))
	for i, key := range keys {
		cases[i] = fmt.Sprintf("%s = %s, cityHash64(%s) %% %d = 0", attributeKey, where.Text(key), text, rare[key])
		if hashes := frequent[key]; len(hashes) > 0 {
			cases[i] += fmt.Sprintf(" OR cityHash64(%s) IN (%s)", text, strings.Join(hashes, ", "))
		}
	}
	return "multiIf(" + strings.Join(cases, ", ") + ", " + where.Always + ")", nil
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
	g := groupRow{of: &a.want.Groups}
	err := a.each(ctx, a.groupStatement(set), g.targets(), func() error {
		if g.spans == 0 { // all spans are one group
			return nil
		}
		n++
		out, err := g.addTo(a.groups)
		sum.Add(&out)
		return err
	})
	if err != nil || n < storequery.MaxGroupsCounted { // each span is in one group
		a.groups.AddTotal(&sum)
		return err
	}
	all := groupRow{of: &a.want.Groups}
	if err := a.one(ctx, a.totalStatement(set), all.counted()...); err != nil {
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
	values, names := a.groupValues()
	if names == "" {
		return a.totalStatement(set)
	}
	return fmt.Sprintf("SELECT %s, %s FROM (%sSELECT %s, %s FROM %s WHERE %s GROUP BY %[1]s, %[8]s)%[9]s", names, a.groupColumns(),
		a.measured(), values, a.groupCounts(), a.table, set, a.groupParts(), largestGroups(names))
}

// groupValues returns the columns of the values of a group, and their names.
func (a *aggregation) groupValues() (columns, names string) {
	var c, n []string
	for i, f := range a.want.Groups.By {
		form, text := fieldValue(f)
		c = append(c, fmt.Sprintf("%s AS form%d, %s AS text%[2]d", form, i+1, text))
		n = append(n, fmt.Sprintf("form%d, text%[1]d", i+1))
	}
	return strings.Join(c, ", "), strings.Join(n, ", ")
}

// largestGroups ends a statement that counts the largest groups.
func largestGroups(names string) string {
	return fmt.Sprintf(" GROUP BY %s ORDER BY spans DESC, %[1]s LIMIT %d", names, storequery.MaxGroupsCounted)
}

// totalStatement returns the statement that counts all rows as one group.
func (a *aggregation) totalStatement(set string) string {
	return fmt.Sprintf("SELECT %s FROM (%sSELECT %s FROM %s WHERE %s GROUP BY %s)",
		a.groupColumns(), a.measured(), a.groupCounts(), a.table, set, a.groupParts())
}

// measured returns the clause that defines measured_number. As a column, it would not be valid
// beside aggregates.
func (a *aggregation) measured() string {
	if a.want.Groups.Measure == tracestore.MeasureNone {
		return ""
	}
	return "WITH " + numberValue(a.want.Groups.Of) + " AS measured_number "
}

// groupParts returns the columns by which groupCounts counts the spans of a group.
func (a *aggregation) groupParts() string {
	if a.want.Groups.Measure == tracestore.MeasureDistribution {
		return "bucket, part, number_bucket"
	}
	return "bucket, part"
}

// groupCounts returns the columns that count spans by duration bucket, part of the window and, for
// a distribution, the bucket of the measured number.
func (a *aggregation) groupCounts() string {
	part, g := "toUInt16(0)", &a.want.Groups
	switch p := a.groups.Parts(); {
	case p.N > 0 && p.OfStep:
		part = fmt.Sprintf("toUInt16(if(start <= %d, 0, intDiv(toUInt64(start - %[1]d - 1), %d) + 1))", p.From, p.Length)
	case p.N > 0:
		part = fmt.Sprintf("toUInt16(intDiv(toUInt64(start - %d), %d))", p.From, p.Length)
	}
	count, failed, time := "count()", "countIf(status = 'error')", "sum(toUInt128(duration))"
	if g.Adjusted {
		count, failed, time = "sum(calls)", "sumIf(calls, status = 'error')", "sum(toUInt128(duration) * calls)"
	}
	out := where.Bucket("duration") + " AS bucket, " + part + " AS part, " + count + " AS n, " + failed + " AS failed, " +
		time + " AS time, min(start) AS first_start, max(start) AS last_start"
	if g.Measure == tracestore.MeasureNone {
		return out
	}
	const finite = "isFinite(measured_number)"
	if g.Measure == tracestore.MeasureDistribution {
		first := tracestore.NumberBucketOf(1)
		out += fmt.Sprintf(", if(measured_number = 0 OR NOT %s, 0, toInt32(if(measured_number > 0, 1, -1) * "+
			"(%d + ceil(%d * log2(abs(measured_number)))))) AS number_bucket", finite, first, tracestore.BucketsPerOctave)
	}
	if g.Adjusted {
		return out + ", sumIf(calls, " + finite + ") AS numbers, sumIf(measured_number * calls, " + finite + ") AS number_sum" + numberBounds
	}
	return out + ", countIf(" + finite + ") AS numbers, sumIf(measured_number, " + finite + ") AS number_sum" + numberBounds
}

const numberBounds = ", minIf(measured_number, isFinite(measured_number)) AS number_min" +
	", maxIf(measured_number, isFinite(measured_number)) AS number_max"

// groupColumns returns the sums and lists of the columns of groupCounts, in the order of
// groupRow.counted.
func (a *aggregation) groupColumns() string {
	arrays := []string{"groupArray(bucket)", "groupArray(part)", "groupArray(n)"}
	if a.want.Groups.Measure == tracestore.MeasureDistribution {
		arrays = append(arrays, "groupArray(number_bucket)")
	}
	if a.want.Groups.Measure != tracestore.MeasureNone {
		arrays = append(arrays, "groupArray(numbers)", "groupArray(number_sum)", "groupArray(number_min)", "groupArray(number_max)")
	}
	return "sum(n) AS spans, sum(failed), " + saturated("sum(time)") + ", min(first_start), max(last_start), " + packed(arrays...)
}

// groupRow is a result row: the spans of a group.
type groupRow struct {
	of                                *tracestore.GroupQuery
	forms, texts                      [tracestore.MaxGroupFields]string
	spans, errors, sum                uint64
	first, last                       uint64
	packed                            []byte // the following arrays
	buckets, parts                    []uint16
	counts                            []uint64
	numberBuckets                     []int32
	numbers                           []uint64
	numberSums, numberMins, numberMax []float64
}

func (g *groupRow) targets() (out []any) {
	for i := range g.of.By {
		out = append(out, &g.forms[i], &g.texts[i])
	}
	return append(out, g.counted()...)
}

func (g *groupRow) counted() []any {
	return []any{&g.spans, &g.errors, &g.sum, &g.first, &g.last, &g.packed}
}

func (g *groupRow) unpack() error {
	arrays := packedArrays{rest: g.packed}
	g.buckets, g.parts, g.counts = nextArray[uint16](&arrays), nextArray[uint16](&arrays), nextArray[uint64](&arrays)
	if g.of.Measure == tracestore.MeasureDistribution {
		g.numberBuckets = nextArray[int32](&arrays)
	}
	if g.of.Measure != tracestore.MeasureNone {
		g.numbers, g.numberSums = nextArray[uint64](&arrays), nextArray[float64](&arrays)
		g.numberMins, g.numberMax = nextArray[float64](&arrays), nextArray[float64](&arrays)
	}
	return arrays.end()
}

// group returns the counts, without values.
func (g *groupRow) group(parts tracestore.Parts) (out tracestore.Group, err error) {
	if err := g.unpack(); err != nil {
		return out, err
	}
	out.Errors = g.errors
	if out.Durations, err = histogramOf(g.sum, g.buckets, g.counts); err != nil || g.spans == 0 {
		return out, err
	}
	if len(g.parts) != len(g.counts) {
		return out, tracestore.Damaged(fmt.Sprintf("group with %d parts and %d counts", len(g.parts), len(g.counts)), nil)
	}
	if parts.N > 0 {
		out.First, out.Last, out.Parts = g.first, g.last, make([]uint64, parts.N)
	}
	for i, part := range g.parts {
		if int(part) >= max(parts.N, 1) {
			return out, tracestore.Damaged(fmt.Sprintf("group with part %d of %d", part, parts.N), nil)
		}
		if parts.N > 0 {
			out.Parts[part] += g.counts[i]
		}
	}
	return out, g.addNumbers(&out, max(parts.N, 1))
}

// addNumbers adds the measured numbers of all parts.
func (g *groupRow) addNumbers(to *tracestore.Group, parts int) error {
	if g.of.Measure == tracestore.MeasureNone {
		return nil
	}
	n, distribution := len(g.parts), g.of.Measure == tracestore.MeasureDistribution
	if len(g.numbers) != n || len(g.numberSums) != n || len(g.numberMins) != n || len(g.numberMax) != n ||
		distribution && len(g.numberBuckets) != n {
		return tracestore.Damaged(fmt.Sprintf("group with %d parts and %d numbers", n, len(g.numbers)), nil)
	}
	to.Numbers = make([]tracestore.Numbers, parts)
	for i, part := range g.parts {
		one := tracestore.Numbers{Count: g.numbers[i], Sum: g.numberSums[i], Min: g.numberMins[i], Max: g.numberMax[i]}
		if distribution {
			one.Buckets = []tracestore.NumberBucket{{Bucket: int(g.numberBuckets[i]), Count: one.Count}}
		}
		to.Numbers[part].Add(&one)
	}
	return nil
}

// withValues returns the group.
func (g *groupRow) withValues(parts tracestore.Parts) (out tracestore.Group, err error) {
	if out, err = g.group(parts); err != nil {
		return out, err
	}
	for i := range g.of.By {
		if out.Values[i].Text, out.Values[i].Present, err = textOf(g.forms[i], g.texts[i]); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (g *groupRow) addTo(counter *storequery.GroupCounter) (tracestore.Group, error) {
	out, err := g.withValues(counter.Parts())
	if err == nil {
		counter.AddGroup(&out)
	}
	return out, err
}
