// Package clickhouse implements the `clickhouse` exporter: a store of spans in a ClickHouse server
// or cluster.
package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/schema"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Factory returns the factory of the `clickhouse` exporter.
func Factory() pipeline.Factory { return FactoryFor(Dialect{}) }

// Dialect adapts statements to servers older than the oldest supported version. Tests use it to run
// on a cluster.
type Dialect = db.Dialect

// FactoryFor is like [Factory] for servers that need a dialect.
func FactoryFor(d Dialect) pipeline.Factory {
	create := func(set pipeline.Settings, c Config) (*exporter, error) { return newExporter(set, c, d) }
	return pipeline.Exporter("clickhouse", defaults, create).
		Doc("Stores spans in ClickHouse, on one server or on a cluster.")
}

// exporter is the store.
type exporter struct {
	cfg   Config
	set   pipeline.Settings
	log   *zap.Logger
	db    *db.DB
	feeds tracestore.Hub

	metrics *metrics
	failing atomic.Bool // the last insert failed
	// These report the exporter as degraded.
	reportTables, reportServers, reportInserts func(error)

	tables   *schema.Schema
	prepared preparation
	follower *follower
	shards   shards
	plans    plans
	results  resultCache
	shared   atomic.Bool // the server replicates tables by itself, without a cluster in the configuration
}

func newExporter(set pipeline.Settings, c Config, dialect Dialect) (*exporter, error) {
	o := c.tables()
	o.Blind = dialect.Blind
	tables, err := schema.New(o)
	if err != nil {
		return nil, err
	}
	if c.InsertQuorum == "" && c.Cluster.Name != "" {
		c.InsertQuorum = db.QuorumAuto
	}
	m, err := newMetrics(set.Metrics)
	if err != nil {
		return nil, err
	}
	d, err := db.New(set, c.Config, dialect)
	if err != nil {
		return nil, err
	}
	e := &exporter{cfg: c, set: set, log: set.Logger, db: d, tables: tables, metrics: m}
	reports := pipeline.NewReports(set.Report)
	e.reportTables, e.reportServers, e.reportInserts = reports.Part("tables"), reports.Part("servers"), reports.Part("inserts")
	e.follower = newFollower(e)
	return e, nil
}

// Pauses between attempts to prepare the tables, which double from the first to the last, and
// between attempts to reach a server.
const (
	firstPause = time.Second
	lastPause  = 5 * time.Second
)

// preparation creates or checks the tables at start. While the server does not respond, it retries
// in the background.
type preparation struct {
	done    atomic.Bool   // the tables are as expected
	failure atomic.Uint32 // db.Class of the latest error
	cancel  context.CancelFunc
	wait    sync.WaitGroup
}

// Start prepares the tables. If the server does not respond, the exporter starts nevertheless, is
// degraded, and retries until it succeeds.
func (e *exporter) Start(ctx context.Context) error {
	if err := e.db.Start(ctx); err != nil {
		return err
	}
	err := e.prepare(ctx)
	if errors.Is(err, schema.ErrUnusable) {
		return errors.Join(err, e.db.Close())
	}
	e.reportPreparation(err)
	ctx, e.prepared.cancel = context.WithCancel(context.WithoutCancel(ctx))
	e.prepared.wait.Go(func() {
		if err != nil {
			e.prepareLater(ctx)
		}
		e.watchServers(ctx)
	})
	return nil
}

// prepare creates or checks the tables.
func (e *exporter) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(e.cfg.Timeout))
	defer cancel()
	if e.cfg.Schema == schemaCheck {
		if err := e.tables.Ready(ctx, e.db); err != nil {
			return fmt.Errorf("checking tables: %w", err)
		}
	} else if changed, err := e.tables.Apply(ctx, e.db); err != nil {
		return fmt.Errorf("preparing tables: %w", err)
	} else if len(changed) > 0 {
		e.log.Info("created or changed tables", zap.Int("statements", len(changed)))
	}
	if err := e.countReplicas(ctx); err != nil {
		return err
	}
	if q, on := e.cfg.Queue.Get(); on && q.Enabled || e.cfg.Schema == schemaCreate { // not in query services
		e.log.Info("configured the durability of inserts", zap.String("durability", e.durabilityText()))
	}
	e.prepared.done.Store(true)
	e.logFindings(ctx)
	return nil
}

// logFindings logs unsuitable settings of the server. They do not prevent the start, because the
// server's limits may be intended.
func (e *exporter) logFindings(ctx context.Context) {
	found, err := e.tables.CheckServer(ctx, e.db)
	if err != nil && ctx.Err() == nil {
		e.log.Warn("cannot check the settings of the server", zap.Error(err))
	}
	for _, f := range found {
		e.log.Warn("server needs attention", zap.Stringer("finding", f))
	}
}

// prepareLater calls prepare until it succeeds or ctx ends.
func (e *exporter) prepareLater(ctx context.Context) {
	for pause := firstPause; sleep(ctx, pause); pause = min(2*pause, lastPause) {
		err := e.prepare(ctx)
		if ctx.Err() != nil {
			return
		}
		e.reportPreparation(err)
		if err == nil {
			return
		}
	}
}

// reportPreparation reports whether the tables are as expected.
func (e *exporter) reportPreparation(err error) {
	e.prepared.failure.Store(uint32(db.ClassOf(err)))
	e.reportTables(e.unlessQueued(err))
	if err == nil {
		e.log.Info("tables are ready")
	}
}

// unlessQueued marks the reason why the servers cannot be used: the process is not ready, unless a
// queue accepts spans meanwhile, or only a shard is missing, so that queries have partial results.
func (e *exporter) unlessQueued(err error) error {
	if q, on := e.cfg.Queue.Get(); on && q.Enabled || shardMissing(err) {
		return err
	}
	return pipeline.NotReady(err)
}

// watchServers reports whether a server can be reached, until ctx ends. It pings only after
// statements have failed, until a server responds.
func (e *exporter) watchServers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.db.Down():
		}
		for err := e.ping(ctx); err != nil && ctx.Err() == nil; err = e.ping(ctx) {
			e.reportServers(e.unlessQueued(err))
			sleep(ctx, lastPause)
		}
		e.reportServers(nil)
	}
}

// ping returns an error if no server can be reached.
func (e *exporter) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(e.cfg.Timeout))
	defer cancel()
	err := e.db.Exec(ctx, "SELECT 1")
	if db.ClassOf(err) == db.Unreachable || errors.Is(err, context.DeadlineExceeded) { // a server that hangs
		return err
	}
	return nil
}

// sleep waits for d and returns true, or false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// checkPrepared returns a temporary error if the tables are not known to be as expected.
func (e *exporter) checkPrepared() error {
	if e.prepared.done.Load() {
		return nil
	}
	return errNotPrepared
}

var errNotPrepared = errors.New("tables are not prepared; see the status of the exporter")

// Stop ends background work and closes the connections.
func (e *exporter) Stop(context.Context) error {
	if e.prepared.cancel != nil {
		e.prepared.cancel()
	}
	e.prepared.wait.Wait()
	e.follower.stop()
	return e.db.Close()
}
