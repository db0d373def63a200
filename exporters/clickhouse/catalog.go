package clickhouse

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

var _ tracestore.Catalog = (*exporter)(nil)

// maxNames is the maximum number of services, or of operations of a service, in one list.
const maxNames = 100_000

// nameCost is the overhead of a name in a list in bytes.
const nameCost = 32

// Services implements tracestore.Catalog.
func (e *exporter) Services(ctx context.Context, tenant string, q tracestore.NameQuery) (names []string, more bool, _ error) {
	table, err := e.operationsTable(ctx, tenant)
	if err != nil {
		return nil, false, err
	}
	limit := nameLimit(q)
	sql := "SELECT DISTINCT service FROM " + table + " WHERE " + where.Tenant(tenant) + prefixCondition("service", q.Prefix) +
		" ORDER BY service LIMIT " + strconv.Itoa(limit+1)
	if names, err = e.strings(ctx, sql); err != nil {
		return nil, false, fmt.Errorf("listing services: %w", err)
	}
	return names[:min(limit, len(names))], len(names) > limit, nil
}

// Operations implements tracestore.Catalog.
func (e *exporter) Operations(
	ctx context.Context, tenant, service, kind string, q tracestore.NameQuery,
) (ops []tracestore.Operation, more bool, _ error) {
	table, err := e.operationsTable(ctx, tenant)
	if err != nil {
		return nil, false, err
	}
	limit := nameLimit(q)
	sql := "SELECT DISTINCT name, kind FROM " + table + " WHERE " + where.Tenant(tenant) + " AND service = " + where.Text(service)
	if kind != "" {
		sql += " AND kind = " + where.Text(kind)
	}
	sql += prefixCondition("name", q.Prefix) + " ORDER BY name, kind LIMIT " + strconv.Itoa(limit+1)
	ops = []tracestore.Operation{}
	err = e.each(ctx, sql, func(r row) error {
		var op tracestore.Operation
		if err := r.Scan(&op.Name, &op.Kind); err != nil {
			return err
		}
		ops = append(ops, op)
		return r.grow(len(op.Name) + len(op.Kind) + nameCost)
	})
	if err != nil {
		return nil, false, fmt.Errorf("listing operations of service %q: %w", service, err)
	}
	return ops[:min(limit, len(ops))], len(ops) > limit, nil
}

// operationsTable returns the table that has the services and operations of a tenant: the list of
// names, or all spans if names may have been deleted.
func (e *exporter) operationsTable(ctx context.Context, tenant string) (string, error) {
	exact, err := e.statistics(ctx, tenant)
	if err != nil {
		return "", err
	}
	if exact {
		return e.db.Table("operations"), nil
	}
	return e.db.Table("spans"), nil
}

func nameLimit(q tracestore.NameQuery) int {
	if q.Limit <= 0 || q.Limit > maxNames {
		return maxNames
	}
	return q.Limit
}

// prefixCondition returns a condition on a column of strings with a prefix, beginning with AND. The
// condition is a range, so that ClickHouse can use the sorting key of a table.
func prefixCondition(column, prefix string) string {
	if prefix == "" {
		return ""
	}
	sql := " AND " + column + " >= " + where.Text(prefix)
	if end := prefixEnd(prefix); end != "" {
		sql += " AND " + column + " < " + where.Text(end)
	}
	return sql
}

// prefixEnd returns the first string after those with a prefix, or "" if there is none.
func prefixEnd(prefix string) string {
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		return ""
	}
	end[len(end)-1]++
	return string(end)
}
