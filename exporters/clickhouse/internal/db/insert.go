package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Insert is one insert of a block of rows.
type Insert struct {
	Table   string // without database
	Columns []string
	Token   string // deduplication token
	Fill    func(driver.Batch) error
}

// Insert stores a block of rows. The server ignores a block if it has already stored a block with
// the same token. If a server cannot be reached, Insert tries the next one: with replicated tables,
// each server knows the tokens of all. At most max_inserts inserts run at the same time; others
// wait. Insert returns the same errors as Select, or the error of ctx if ctx ends while Insert
// waits.
func (d *DB) Insert(ctx context.Context, in Insert) error {
	select {
	case d.inserts <- struct{}{}:
		defer func() { <-d.inserts }()
	case <-ctx.Done():
		return ctx.Err()
	}
	names := make([]string, len(in.Columns))
	for i, c := range in.Columns {
		names[i] = Quote(c)
	}
	sql := "INSERT INTO " + d.Table(in.Table) + " (" + strings.Join(names, ", ") + ")"
	ctx = d.with(ctx, d.insertSettings(in.Token))
	return d.try(ctx, always, func(h *host) error {
		began := d.hosts.now()
		err := h.insert(ctx, sql, in.Fill)
		late := errors.Is(ctx.Err(), context.DeadlineExceeded)
		if err != nil && late && d.hosts.now().Sub(began) >= d.cfg.ConnectTimeout.Std() {
			e := &Error{Host: h.address, Table: in.Table, Class: Unreachable, Err: errNoAnswer}
			d.failed(h, e)
			return e.marked()
		}
		return wrap(ctx, h.address, in.Table, err)
	})
}

// errNoAnswer is the error of an insert whose deadline has passed although the server had at least
// connect_timeout. (With less, the time was spent earlier, which says nothing about the server.)
// The next attempt uses another server.
var errNoAnswer = fmt.Errorf("no response within the timeout: %w", context.DeadlineExceeded)

func (h *host) insert(ctx context.Context, sql string, fill func(driver.Batch) error) error {
	b, err := h.conn.PrepareBatch(ctx, sql)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	if err := fill(b); err != nil {
		_ = b.Abort() // without rows, Close would end the statement as if it were complete
		return err
	}
	return b.Send()
}
