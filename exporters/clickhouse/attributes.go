package clickhouse

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	// defaultListed is the maximum length of a list of attributes if the caller sets none.
	defaultListed = 1000
	// maxFloats is the maximum number of distinct numbers of a key that are examined for a prefix.
	maxFloats = 100_000
	// maxValueRows is the maximum number of spans that one statement examines for values of a key.
	maxValueRows = 500_000_000
)

// AttributeKeys implements tracestore.Catalog.
func (e *exporter) AttributeKeys(ctx context.Context, tenant, prefix string, limit int) ([]string, error) {
	if limit <= 0 {
		limit = defaultListed
	}
	exact, err := e.statistics(ctx, tenant)
	if err != nil {
		return nil, err
	}
	from := "SELECT key FROM " + e.db.Table("attributes") + " WHERE " + where.Tenant(tenant)
	if !exact {
		from = "SELECT arrayJoin(" + where.AllKeys() + ") AS key FROM " + e.db.Table("spans") +
			" WHERE " + where.Tenant(tenant)
	}
	var places []string
	for _, place := range where.Prefixes(tracestore.AnyAttribute) {
		places = append(places, "("+strings.TrimPrefix(prefixCondition("key", place+prefix), " AND ")+")")
	}
	sql := "SELECT DISTINCT substring(key, position(key, '.') + 1) AS name FROM (SELECT DISTINCT key FROM (" + from + "))" +
		" WHERE (" + strings.Join(places, " OR ") + ") AND name != " + where.Text(otlpdata.FlagsAttribute) +
		" ORDER BY name LIMIT " + strconv.Itoa(limit)
	keys, err := e.strings(ctx, sql)
	if err != nil {
		return nil, fmt.Errorf("listing attribute keys: %w", err)
	}
	return keys, nil
}

// AttributeValues implements tracestore.Catalog. It examines the newest spans first and stops when
// it has found enough values. For a tenant with very many spans it examines only a part.
func (e *exporter) AttributeValues(ctx context.Context, tenant, key, prefix string, limit int) ([]string, error) {
	if limit <= 0 {
		limit = defaultListed
	}
	if key == otlpdata.FlagsAttribute {
		return []string{}, nil
	}
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer memory.Release()
	found := make(map[string]struct{})
	for _, w := range e.recentFirst() {
		v := valueQuery{tenant: tenant, key: key, prefix: prefix, from: w[0], to: w[1], limit: limit - len(found), memory: memory}
		if err := e.addValues(ctx, &v, found); err != nil {
			return nil, fmt.Errorf("listing values of attribute %q: %w", key, err)
		}
		if len(found) >= limit {
			break
		}
	}
	values := make([]string, 0, len(found))
	for v := range found {
		values = append(values, v)
	}
	slices.Sort(values)
	return values[:min(limit, len(values))], nil
}

// recentFirst returns windows of span starts, both bounds inclusive, that together cover all spans,
// the newest first.
func (e *exporter) recentFirst() [][2]uint64 {
	now := uint64(max(e.set.Env.Now().UnixNano(), 0))
	end := uint64(math.MaxUint64)
	var windows [][2]uint64
	for _, age := range []time.Duration{time.Hour, 24 * time.Hour} {
		if now < uint64(age) {
			continue
		}
		windows = append(windows, [2]uint64{now - uint64(age), end})
		end = now - uint64(age) - 1
	}
	return append(windows, [2]uint64{0, end})
}

// valueQuery selects values of a key within a window.
type valueQuery struct {
	tenant, key, prefix string
	from, to            uint64 // bounds of starts, both inclusive
	limit               int
	memory              *tracestore.Memory // of the values that were found
}

// addValues adds values of a window, at most limit new ones of each type.
func (e *exporter) addValues(ctx context.Context, v *valueQuery, found map[string]struct{}) error {
	for _, p := range rows.Pairs() {
		if err := e.eachRow(ctx, e.valuesSQL(v, p, len(found)), func(r db.Rows) error {
			text, err := scanValue(r, p)
			if err != nil || !strings.HasPrefix(text, v.prefix) {
				return err
			}
			if _, ok := found[text]; !ok {
				found[text] = struct{}{}
				return v.memory.Grow(int64(len(text) + nameCost))
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// valuesSQL returns the statement that reads values of a type. known is the number of values that
// were already found, which the statement may return again.
func (e *exporter) valuesSQL(v *valueQuery, p rows.Pair, known int) string {
	keys := where.Texts(where.Listed(p, tracestore.Field{Place: tracestore.AnyAttribute, Key: v.key}))
	values := "arrayJoin(arrayFilter((v, k) -> k IN (" + keys + "), `" + p.Values() + "`, `" + p.Keys() + "`))"
	condition := ""
	limit := v.limit + known
	switch p {
	case rows.PairInt:
		condition = prefixCondition("value", v.prefix)
		values = "toString(" + values + ")"
	case rows.PairFloat: // only Go knows the text of a number
		limit = maxFloats
	default:
		condition = prefixCondition("value", v.prefix)
	}
	condition = strings.TrimPrefix(condition, " AND ")
	if condition == "" {
		condition = "1"
	}
	return "SELECT DISTINCT value FROM (SELECT " + values + " AS value FROM " + e.db.Table("spans") + " WHERE " + where.Tenant(v.tenant) +
		" AND " + where.Window(v.from, v.to) + " AND hasAny(`" + p.Keys() + "`, [" + keys + "])) WHERE " + condition +
		" LIMIT " + strconv.Itoa(limit) +
		" SETTINGS max_rows_to_read = " + strconv.FormatInt(e.valueRows(), 10) + ", read_overflow_mode = 'break'"
}

// valueRows returns the maximum number of spans that one statement examines for values of a key.
func (e *exporter) valueRows() int64 {
	if n := e.cfg.Query.MaxRows; n > 0 {
		return min(n, maxValueRows)
	}
	return maxValueRows
}

// scanValue returns the text of a value.
func scanValue(r db.Rows, p rows.Pair) (string, error) {
	if p == rows.PairFloat {
		var f float64
		err := r.Scan(&f)
		return otlpdata.DoubleValue(f).AsString(), err
	}
	var text string
	err := r.Scan(&text)
	return text, err
}

// strings returns the rows of a statement with one column of strings.
func (e *exporter) strings(ctx context.Context, sql string) ([]string, error) {
	list := []string{}
	err := e.each(ctx, sql, func(r row) error {
		var s string
		if err := r.Scan(&s); err != nil {
			return err
		}
		list = append(list, s)
		return r.grow(len(s) + nameCost)
	})
	return list, err
}

var _ storequery.AttributeHistory = (*exporter)(nil)

// EachAttribute implements storequery.AttributeHistory with the table "attributes", if it is exact;
// see statistics.
func (e *exporter) EachAttribute(
	ctx context.Context, tenant string, from, to time.Time, take func(*storequery.AttributeTime) error,
) (known bool, missing tracestore.Reasons, err error) {
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok {
		return true, nil, ctx.Err()
	}
	sql := fmt.Sprintf("SELECT toString(service), toString(key) AS k, value, sum(spans), min(first), max(last) FROM %s "+
		"WHERE %s AND %s AND hour BETWEEN %d AND %d AND (startsWith(key, %s) OR key IN (%s)) AND %s "+
		"GROUP BY service, k, value, hour ORDER BY service, k, value, hour",
		e.db.Table("attributes"), where.Tenant(tenant), where.Days(first, last), first/hourLength, last/hourLength,
		where.Text(rows.PrefixSpan), where.Texts(rows.ResourceKeys(storequery.IdentityKeys())), e.ifExact(tenant))
	known, err = e.fromStatistics(ctx, tenant, func(ctx context.Context) (n int, err error) {
		var a storequery.AttributeTime
		var key string
		err = e.eachScanned(ctx, sql, []any{&a.Service, &key, &a.Value, &a.Spans, &a.First, &a.Last}, func() error {
			n++
			for _, f := range (&attributeKeys{}).of(key) {
				a.Field = f
				return take(&a)
			}
			return nil
		})
		return n, err
	})
	if err != nil {
		return known, nil, fmt.Errorf("reading when services had attributes: %w", err)
	}
	return known, e.missingShards(ctx), nil
}
