package clickhouse

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storeadmin"
)

var (
	_ tracestore.Deleter    = (*exporter)(nil)
	_ pipeline.Administered = (*exporter)(nil)
)

// tracesPerDelete is the maximum number of traces that one statement deletes, so that its text
// stays within the default limit of servers.
const tracesPerDelete = 2000

// AdminHandler returns the HTTP API for deletions.
func (e *exporter) AdminHandler() http.Handler { return storeadmin.Handler(e) }

// deletionEpoch returns a number that grows with each deletion of a tenant, and is 0 if none of its
// spans were deleted since the oldest statistics. It is odd while a deletion runs, or if the last
// one failed. It is part of the tokens of inserts, so that a deleted span can be resent and is
// stored. If a shard (possibly the one with the log) does not respond, the error matches
// shardMissing.
func (e *exporter) deletionEpoch(ctx context.Context, tenant string) (epoch uint64, _ error) {
	err := e.each(wholeCluster(ctx), e.epochQuery(tenant), func(r row) error { return r.Scan(&epoch) })
	if err != nil {
		return 0, fmt.Errorf("reading the log of deletions: %w", err)
	}
	return epoch, nil
}

func (e *exporter) epochQuery(tenant string) string {
	return "SELECT max(epoch) FROM " + e.db.Table("deletions") + " WHERE " + where.Tenant(tenant)
}

// statistics reports whether the tables that views fill (operations, attributes, bounds,
// minutes) are exact for a tenant. They are not after a deletion, because their rows cannot be
// corrected; the tables of spans are always exact. While a shard is missing, this is unknown.
func (e *exporter) statistics(ctx context.Context, tenant string) (exact bool, _ error) {
	epoch, err := e.deletionEpoch(ctx, tenant)
	if shardMissing(err) {
		return false, nil
	}
	return epoch == 0, err
}

// ifExact returns a condition for statements on tables that views fill: it holds if these tables
// are exact; see statistics. If a statement returns nothing, the caller must call statistics. The
// statement must run with wholeCluster; an error that matches shardMissing means that the tables
// are not exact.
func (e *exporter) ifExact(tenant string) string { return "(" + e.epochQuery(tenant) + ") = 0" }

// fromStatistics calls read, which runs a statement with the condition ifExact and returns the
// number of rows. It reports whether the result is valid.
func (e *exporter) fromStatistics(ctx context.Context, tenant string, read func(context.Context) (rows int, err error)) (bool, error) {
	n, err := read(wholeCluster(ctx))
	switch {
	case n == 0 && shardMissing(err):
		return false, nil
	case err != nil || n > 0:
		return true, err
	}
	return e.statistics(ctx, tenant)
}

// Delete implements tracestore.Deleter. A span that is being stored while Delete runs may be
// deleted in part: searches may find it although its trace does not contain it. If a server of a
// cluster is down, Delete fails and should be retried when the server is up.
func (e *exporter) Delete(ctx context.Context, tenant string, d tracestore.Deletion) (tracestore.Deleted, error) {
	if !e.cfg.AllowDelete {
		return tracestore.Deleted{}, pipeline.Permanent(tracestore.ErrNotAllowed)
	}
	if err := d.Check(); err != nil {
		return tracestore.Deleted{}, pipeline.Permanent(err)
	}
	parts := deletionParts(&d)
	if d.DryRun {
		n, err := e.countCovered(ctx, "payload", tenant, parts)
		return tracestore.Deleted{Spans: n}, err
	}
	n, err := e.deleteSpans(ctx, tenant, &d, parts)
	if err != nil {
		return tracestore.Deleted{}, fmt.Errorf("deleting spans: %w", err)
	}
	e.log.Info("deleted spans on request", zap.String("tenant", tenant), zap.Stringer("what", &d), zap.Int("spans", n))
	return tracestore.Deleted{Spans: n}, nil
}

func (e *exporter) deleteSpans(ctx context.Context, tenant string, d *tracestore.Deletion, parts []deletionPart) (spans int, _ error) {
	spans, err := e.countCovered(ctx, "payload", tenant, parts)
	if err != nil {
		return 0, err
	}
	searched, err := e.countCovered(ctx, "spans", tenant, parts)
	if err != nil {
		return 0, err
	}
	epoch, err := e.deletionEpoch(ctx, tenant)
	if err != nil || spans+searched == 0 && epoch%2 == 0 {
		return 0, err
	}
	// Statistics are not used from here on.
	if err := e.logDeletion(ctx, tenant, d, (epoch+1)|1); err != nil {
		return 0, err
	}
	for _, p := range parts {
		for _, table := range p.tables {
			if err := e.deleteRows(ctx, table, tenant, p.condition); err != nil {
				return 0, err
			}
		}
	}
	// From here on, spans that were stored meanwhile and then deleted can be stored again.
	if epoch, err = e.deletionEpoch(ctx, tenant); err != nil {
		return 0, err
	}
	return spans, e.logDeletion(ctx, tenant, d, ((epoch+1)|1)+1)
}

// deletionPart is a part of a deletion that one statement for each table deletes.
type deletionPart struct {
	condition string
	tables    []string
}

func deletionParts(d *tracestore.Deletion) []deletionPart {
	if len(d.Traces) == 0 {
		from, to, _ := d.Window()
		condition := where.Window(from, to)
		if d.Service != "" {
			condition = "service = " + where.Text(d.Service) + " AND " + condition
		}
		return []deletionPart{{condition, []string{"payload", "spans"}}}
	}
	var parts []deletionPart
	ids := slices.Clone(d.Traces)
	slices.SortFunc(ids, func(a, b otlpdata.TraceID) int { return slices.Compare(a[:], b[:]) })
	for part := range slices.Chunk(slices.Compact(ids), tracesPerDelete) {
		parts = append(parts, deletionPart{"trace_id IN (" + where.TraceIDs(part) + ")", []string{"payload", "spans", "bounds"}})
	}
	return parts
}

// countCovered returns the number of rows of a tenant that a deletion covers.
func (e *exporter) countCovered(ctx context.Context, table, tenant string, parts []deletionPart) (rows int, _ error) {
	for _, p := range parts {
		n, err := e.count(ctx, table, tenant, p.condition)
		if err != nil {
			return 0, fmt.Errorf("counting spans to delete: %w", err)
		}
		rows += n
	}
	return rows, nil
}

// count returns the number of rows of a tenant that a condition selects.
func (e *exporter) count(ctx context.Context, table, tenant, condition string) (int, error) {
	var n uint64
	sql := "SELECT count() FROM " + e.db.Table(table) + " WHERE " + where.Tenant(tenant) + " AND " + condition
	err := e.each(ctx, sql, func(r row) error { return r.Scan(&n) })
	return int(n), err
}

// deleteRows deletes rows of a tenant on all servers and waits for it.
func (e *exporter) deleteRows(ctx context.Context, table, tenant, condition string) error {
	return e.db.Exec(ctx, e.tables.Delete(table, where.Tenant(tenant)+" AND "+condition))
}

// logDeletion adds the beginning or the end of a deletion to the log.
func (e *exporter) logDeletion(ctx context.Context, tenant string, d *tracestore.Deletion, epoch uint64) error {
	now := e.set.Env.Now()
	return e.db.Insert(ctx, db.Insert{
		Table: "deletions", Columns: []string{"tenant", "epoch", "at", "day", "what"},
		Fill: func(b driver.Batch) error {
			return b.Append(tenant, epoch, uint64(max(now.UnixNano(), 0)), now.UTC().Truncate(24*time.Hour), d.String())
		},
	})
}
