package clickhouse

import (
	"context"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// forgetsRows reports whether a server may remember the token of an insert without its rows. A
// table without replicas writes the token to its deduplication log and then makes the rows visible.
// If the server is killed in between, it drops the rows when it starts, and ignores the next insert
// with the token. Replicated tables commit both in one step. With several endpoints, another server
// could answer than the one that stored the rows.
func (e *exporter) forgetsRows() bool { return e.cfg.Cluster.Name == "" && len(e.cfg.Endpoints) == 1 }

// rereads are the pauses before isStored reads again, in case that the answer came from another
// server, behind the same endpoint, that does not have the rows yet.
var rereads = [...]time.Duration{0, 100 * time.Millisecond, time.Second}

// isStored reports whether the rows of a block are in a table.
func (e *exporter) isStored(ctx context.Context, b *rows.Block, t *rows.Table) (bool, error) {
	sql := e.probeStatement(b, t)
	ctx = db.WithSettings(ctx, db.Settings{"max_rows_to_read": 0}) // which limits queries of users
	for _, pause := range rereads {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(pause):
		}
		var found uint64
		err := e.each(ctx, sql, func(r row) error { return r.Scan(&found) })
		if err != nil || found >= uint64(len(b.Probes)) {
			return err == nil, err
		}
	}
	return false, nil
}

// probeStatement returns the statement that counts the partitions of a block in a table.
func (e *exporter) probeStatement(b *rows.Block, t *rows.Table) string {
	ids := make([]otlpdata.TraceID, 0, len(b.Probes))
	services := make([]string, 0, len(b.Probes))
	starts := make([]string, 0, len(b.Probes))
	for _, p := range b.Probes {
		ids, services, starts = append(ids, p.Trace), append(services, p.Service), append(starts, where.Uint(p.Start))
	}
	conditions := []string{where.Tenant(b.Tenant), ofTraces(ids), "start IN (" + strings.Join(starts, ", ") + ")"}
	if t == b.Payload {
		conditions = append(conditions, "batch = "+where.Text(where.Uint(b.Batch)))
	} else {
		conditions = append(conditions, "service IN ("+where.Texts(services)+")")
	}
	return "SELECT uniqExact(day, odd) FROM " + e.db.Table(t.Name) + " WHERE " + strings.Join(conditions, " AND ")
}
