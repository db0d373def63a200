package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Limits of one insert. A batch that exceeds them is stored with several inserts.
const (
	maxInsertRows  = 100_000
	maxInsertBytes = 64 << 20
)

// Consume stores the spans of b. A batch of usual size is one insert into each of the two tables;
// the views do the rest. If Consume fails, some of the spans may be stored. It can be retried with
// the same batch, by any process, and then stores the rest.
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

// beforeInserts checks that the tables exist, and returns the epoch of a tenant's deletions. An
// error counts as a failure of the first insert, because it prevents the insert.
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

// insertTable stores the rows of one table and checks that they are stored.
func (e *exporter) insertTable(ctx context.Context, b *rows.Block, t *rows.Table, token string) error {
	in := db.Insert{Table: t.Name, Columns: t.Columns, Token: token, Fill: db.FillColumns(t)}
	if err := e.db.Insert(ctx, in); err != nil || !e.forgetsRows() {
		return err
	}
	stored, err := e.isStored(ctx, b, t)
	if err != nil || stored {
		return err
	}
	e.log.Warn("rows of an earlier insert were lost in a crash of the server; resending them", zap.String("table", t.Name))
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

// forgetsRows reports whether a server may remember the token of an insert without its rows. A
// table without replicas writes the token to its deduplication log and then makes the rows visible.
// If the server is killed in between, it drops the rows when it starts, and ignores the next insert
// with the token. Replicated tables commit both in one step. With several endpoints, the response
// could come from another server than the one that stored the rows.
func (e *exporter) forgetsRows() bool { return e.cfg.Cluster.Name == "" && len(e.cfg.Endpoints) == 1 }

// rereads are the pauses before isStored rereads, in case the response came from another server
// behind the same endpoint that does not have the rows yet.
var rereads = [...]time.Duration{0, 100 * time.Millisecond, time.Second}

// isStored reports whether the rows of a block are in a table.
func (e *exporter) isStored(ctx context.Context, b *rows.Block, t *rows.Table) (bool, error) {
	sql := e.probeStatement(b, t)
	ctx = db.WithSettings(ctx, db.Settings{"max_rows_to_read": 0}) // it limits user queries
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

var _ pipeline.DurabilityReporter = (*exporter)(nil)

// Durability reports that acknowledged spans are on the servers' disks, and whether they are
// synced.
func (e *exporter) Durability() pipeline.Durability {
	if e.cfg.Fsync {
		return pipeline.DurabilityStored
	}
	return pipeline.DurabilityWritten
}

// durabilityText describes for the log where acknowledged spans are.
func (e *exporter) durabilityText() string {
	text := "on one server"
	switch n, majority := e.db.Quorum(); {
	case e.cfg.Cluster.Name == "": // which has no replicas
	case majority:
		text = "on the majority of replicas"
	case n > 1:
		text = "on " + strconv.Itoa(n) + " replicas"
	default:
		text = "on one replica, copied to the others later"
	}
	if e.cfg.Fsync {
		return text + ", synced to disk"
	}
	return text + ", synced to disk later"
}

// countReplicas sets the number of replicas per shard of the cluster on the connection. The quorum
// of inserts depends on it. Without a cluster, it finds out whether the server has replicas.
func (e *exporter) countReplicas(ctx context.Context) error {
	if e.cfg.Cluster.Name == "" {
		n, err := e.number(ctx, "SELECT count() FROM system.tables WHERE database = "+where.Text(e.cfg.Database)+
			" AND name = 'spans' AND startsWith(engine, 'Shared')")
		if err != nil {
			return fmt.Errorf("reading the engine of tables: %w", err)
		}
		e.shared.Store(n > 0)
		return nil
	}
	n, err := e.number(ctx, "SELECT toUInt64(min(replicas)) FROM (SELECT shard_num, count() AS replicas FROM system.clusters WHERE cluster = "+
		where.Text(e.cfg.Cluster.Name)+" GROUP BY shard_num)")
	if err != nil {
		return fmt.Errorf("counting replicas: %w", err)
	}
	e.db.SetReplicas(int(n))
	return nil
}

// metrics are the metrics of inserts. All have the label table.
type metrics struct {
	rows, bytes      *prometheus.CounterVec
	failures         *prometheus.CounterVec // also by reason
	seconds, perSend *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_clickhouse_" + name, Help: help}, append(labels, "table"))
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		o := prometheus.HistogramOpts{Name: "tracing_clickhouse_" + name, Help: help, Buckets: buckets}
		return prometheus.NewHistogramVec(o, []string{"table"})
	}
	m := &metrics{
		rows:  counter("inserted_rows_total", "Rows in acknowledged inserts, including repeated ones, which the server ignores."),
		bytes: counter("inserted_bytes_total", "Size of the encoded spans in acknowledged inserts."),
		failures: counter("insert_failures_total",
			"Inserts that failed and are retried, by reason: unreachable, overloaded, limited, misconfigured, bad_data or unknown.", "reason"),
		seconds: histogram("insert_seconds", "Duration of acknowledged inserts, including the wait for max_inserts.",
			[]float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}),
		perSend: histogram("insert_rows", "Rows of acknowledged inserts. Most should be above 10,000.",
			[]float64{10, 100, 1000, 5000, 10_000, 25_000, 50_000, 100_000}),
	}
	for _, c := range []prometheus.Collector{m.rows, m.bytes, m.failures, m.seconds, m.perSend} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

// inserted records one insert of spans that take a number of bytes.
func (m *metrics) inserted(t *rows.Table, bytes int, took time.Duration, err error) {
	if err != nil {
		m.failed(t.Name, db.ClassOf(err))
		return
	}
	n := t.Rows()
	m.rows.WithLabelValues(t.Name).Add(float64(n))
	m.bytes.WithLabelValues(t.Name).Add(float64(bytes))
	m.seconds.WithLabelValues(t.Name).Observe(took.Seconds())
	m.perSend.WithLabelValues(t.Name).Observe(float64(n))
}

// failed records an insert into a table that failed, or that was not tried because of an error.
func (m *metrics) failed(table string, reason db.Class) {
	m.failures.WithLabelValues(reason.String(), table).Inc()
}
