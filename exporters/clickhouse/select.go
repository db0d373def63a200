package clickhouse

import (
	"cmp"
	"context"
	"errors"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// row is the current row of an answer.
type row struct {
	db.Rows
	memory *tracestore.Memory // of the query
}

// grow reserves memory for what is kept of the row.
func (r row) grow(bytes int) error { return r.memory.Grow(int64(bytes)) }

// each runs a statement and calls visit with each row of the answer. The memory that visit reserves
// is released when each returns. Otherwise each is like eachRow.
func (e *exporter) each(ctx context.Context, sql string, visit func(row) error) error {
	m, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return err
	}
	defer m.Release()
	return e.eachRow(ctx, sql, func(r db.Rows) error { return visit(row{r, m}) })
}

// errStop ends a read early, without an error.
var errStop = errors.New("stop")

// eachRow calls visit for each row of a statement. If visit returns errStop, eachRow ends without
// an error. If ctx has ended, the error is that of ctx.
func (e *exporter) eachRow(ctx context.Context, sql string, visit func(db.Rows) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	found, err := e.db.Select(ctx, sql)
	if err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	defer func() { _ = found.Close() }() // an error of the read is that of Err
	for found.Next() {
		if err := visit(found); errors.Is(err, errStop) {
			return nil
		} else if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := found.Err(); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	return ctx.Err()
}

// eachScanned calls visit for each row of a statement after it was read into some variables.
// Otherwise it is like eachRow.
func (e *exporter) eachScanned(ctx context.Context, sql string, to []any, visit func() error) error {
	return e.eachRow(ctx, sql, func(r db.Rows) error {
		if err := r.Scan(to...); err != nil {
			return err
		}
		return visit()
	})
}

// number returns the number that a statement selects.
func (e *exporter) number(ctx context.Context, sql string) (n uint64, err error) {
	err = e.eachRow(ctx, sql, func(r db.Rows) error { return r.Scan(&n) })
	return n, err
}
