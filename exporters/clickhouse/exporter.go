// Package clickhouse implements the exporter "clickhouse": a store of spans in a ClickHouse server
// or cluster.
package clickhouse

import (
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/schema"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Factory returns the factory of the exporter "clickhouse".
func Factory() pipeline.Factory { return FactoryFor(Dialect{}) }

// Dialect adapts statements to servers that are older than those that the exporter supports. Tests
// use it to run on a cluster.
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
