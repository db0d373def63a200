package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

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
