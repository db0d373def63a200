package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Limits of one insert. A batch that exceeds them is stored with several inserts.
const (
	maxInsertRows  = 100_000
	maxInsertBytes = 64 << 20
)

// Consume stores the spans of b. A batch of usual size is one insert into each of the two tables;
// the views do the rest. If Consume fails, some of the spans may be stored: it can be called with
// the same batch again, by any process, and stores the rest.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	epoch, err := e.beforeInserts(ctx, b.Meta().Tenant)
	if err != nil {
		return err
	}
	o := rows.Options{Arrived: b.Meta().Received, Retention: time.Duration(e.cfg.Retention.Spans), MaxRows: maxInsertRows,
		MaxBytes: maxInsertBytes}
	if o.Arrived.IsZero() {
		o.Arrived = e.set.Env.Now()
	}
	var insertErr error
	err = rows.Encode(b, o, func(block *rows.Block) error {
		insertErr = e.insert(ctx, block, epoch)
		return insertErr
	})
	switch {
	case insertErr != nil:
		return insertErr
	case err != nil:
		return pipeline.Permanent(fmt.Errorf("parsing spans: %w", err))
	}
	e.feeds.Publish(b)
	return nil
}

// beforeInserts checks that the tables are there, and returns the epoch of the deletions of a
// tenant. An error counts as failure of the first insert, because it prevents it.
func (e *exporter) beforeInserts(ctx context.Context, tenant string) (epoch uint64, err error) {
	if err := e.checkPrepared(); err != nil {
		e.metrics.failed(rows.PayloadTable, db.Class(e.prepared.failure.Load()))
		return 0, err
	}
	if epoch, err = e.deletionEpoch(ctx, tenant); err != nil {
		e.metrics.failed(rows.PayloadTable, db.ClassOf(err))
		e.reportInsert(err)
	}
	return epoch, err
}

// insert stores a block in both tables. The payload goes first, because a trace that a search finds
// must be readable.
func (e *exporter) insert(ctx context.Context, b *rows.Block, epoch uint64) error {
	e.follower.stored(b.Batch)
	token := b.Hash
	if epoch > 0 {
		token += "-" + strconv.FormatUint(epoch, 10)
	}
	for _, t := range []*rows.Table{b.Payload, b.Spans} {
		began := time.Now()
		err := e.insertTable(ctx, b, t, token+"-"+t.Name)
		e.metrics.inserted(t, b.Bytes, time.Since(began), err)
		e.reportInsert(err)
		if err != nil {
			return fmt.Errorf("storing spans: %w", err)
		}
	}
	return nil
}

// insertTable stores the rows of one table and checks that they are there.
func (e *exporter) insertTable(ctx context.Context, b *rows.Block, t *rows.Table, token string) error {
	in := db.Insert{Table: t.Name, Columns: t.Columns, Token: token, Fill: db.FillColumns(t)}
	if err := e.db.Insert(ctx, in); err != nil || !e.forgetsRows() {
		return err
	}
	stored, err := e.isStored(ctx, b, t)
	if err != nil || stored {
		return err
	}
	e.log.Warn("rows of an earlier insert were lost in a crash of the server; storing them again", zap.String("table", t.Name))
	in.Token += "-again"
	return e.db.Insert(ctx, in)
}

// reportInsert reports the exporter as degraded while inserts fail.
func (e *exporter) reportInsert(err error) {
	switch {
	case err == nil:
		if e.failing.CompareAndSwap(true, false) {
			e.reportInserts(nil)
		}
	case !errors.Is(err, context.Canceled):
		e.failing.Store(true)
		e.reportInserts(err)
	}
}
