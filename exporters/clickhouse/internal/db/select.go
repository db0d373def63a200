package db

import (
	"context"
	"maps"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Rows are the rows of a result. The caller must close them, which ends the statement, and check
// Err after the last row.
type Rows = driver.Rows

// Select runs a statement that returns rows. Tables need their database; see Table. Settings
// of ctx override the limits of the configuration; see WithSettings. Errors are *Error, with a mark
// for pipeline.IsTemporary.
func (d *DB) Select(ctx context.Context, sql string) (Rows, error) {
	all := d.selectSettings(ctx)
	maps.Copy(all, settingsOf(ctx))
	sql = d.dialect.statement(sql)
	var out *rows
	err := d.try(ctx, always, func(h *host) error {
		ctx, cancel := context.WithCancel(ctx)
		r, err := h.conn.Query(d.with(ctx, all), sql)
		if err != nil {
			err = wrap(ctx, h.address, "", err)
			cancel()
			return err
		}
		out = &rows{Rows: r, ctx: ctx, cancel: cancel, db: d, host: h}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// rows are rows that end their statement when they are closed.
type rows struct {
	driver.Rows
	ctx    context.Context
	cancel context.CancelFunc
	db     *DB
	host   *host
	ended  bool // all rows were read
	err    error
}

// Next advances to the next row.
func (r *rows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.ended = true
	return false
}

// Err returns the error that ended the rows.
func (r *rows) Err() error {
	if r.err == nil {
		if r.err = wrap(r.ctx, r.host.address, "", r.Rows.Err()); ClassOf(r.err) == Unreachable && CodeOf(r.err) != CodeShardMissing {
			r.db.failed(r.host, r.err)
		}
	}
	return r.err
}

// Close ends the statement. The server discards unread rows. Close returns the error of Err if all
// rows were read.
func (r *rows) Close() error {
	var err error
	if r.ended {
		err = r.Err() // before ctx ends
	}
	r.cancel()
	_ = r.Rows.Close() // the error of ctx
	return err
}

// Exec runs a statement that returns nothing. Errors are the same as for Select.
func (d *DB) Exec(ctx context.Context, sql string) error {
	all := maps.Clone(settingsOf(ctx))
	sql = d.dialect.statement(sql)
	return d.try(ctx, ifNotSent, func(h *host) error { return wrap(ctx, h.address, "", h.conn.Exec(d.with(ctx, all), sql)) })
}
