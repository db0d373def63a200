package clickhouse

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/schema"
	"github.com/tracing-backend/tracing/pipeline"
)

// Config is the configuration of the exporter.
type Config struct {
	db.Config
	pipeline.Delivery
	Schema      string          `yaml:"schema" doc:"What to do at start: create (create missing tables and upgrade old ones) or check (report what is missing)."`
	Cluster     ClusterConfig   `yaml:"cluster" doc:"Cluster that holds the tables. It cannot be changed after the tables were created."`
	Fsync       bool            `yaml:"fsync" doc:"Whether servers sync each insert to disk before they acknowledge it. Otherwise, a power failure can lose acknowledged spans that no other replica has."`
	DedupWindow int             `yaml:"dedup_window" doc:"Number of recent inserts into each table that servers remember, so that retries are stored once."`
	Retention   RetentionConfig `yaml:"retention" doc:"Time for which spans and statistics are stored."`
	AllowDelete bool            `yaml:"allow_delete" doc:"Whether the admin extension accepts requests to delete traces, services and time ranges."`
}

// ClusterConfig describes the servers that have the tables.
type ClusterConfig struct {
	Name               string `yaml:"name" doc:"Name of the cluster in the configuration of the servers. Empty for tables on one server."`
	Sharded            bool   `yaml:"sharded" doc:"Whether each shard has a part of the traces. Otherwise, each server has all."`
	ReplicatedDatabase bool   `yaml:"replicated_database" doc:"Whether the database has the engine Replicated, which creates tables on all servers."`
}

// RetentionConfig limits the age of stored data.
type RetentionConfig struct {
	Spans      pipeline.Duration `yaml:"spans" doc:"Time for which spans are stored, rounded up to whole days. 0 disables the limit."`
	Statistics pipeline.Duration `yaml:"statistics" doc:"Time for which call counts per minute and operation, names, and calls between services are stored, rounded up to whole days, and at least as long as spans. 0 disables the limit."`
}

// Values of Config.Schema.
const (
	schemaCreate = "create"
	schemaCheck  = "check"
)

// Bounds of Config.DedupWindow.
const (
	minDedupWindow = 100
	maxDedupWindow = 1_000_000
)

func defaults() Config {
	const day = 24 * time.Hour
	delivery := pipeline.DefaultDelivery()
	delivery.Timeout = pipeline.Duration(time.Minute)
	delivery.Retry.MaxElapsedTime = 0 // an insert is retried until it is acknowledged
	return Config{
		Config: db.DefaultConfig(), Delivery: delivery,
		Schema: schemaCreate, DedupWindow: schema.DefaultDedupWindow,
		Retention: RetentionConfig{Spans: pipeline.Duration(14 * day), Statistics: pipeline.Duration(60 * day)},
	}
}

// Validate checks values beyond their types.
func (c *Config) Validate() error {
	errs := []error{c.Config.Validate(), c.Delivery.Validate()}
	if c.Schema != schemaCreate && c.Schema != schemaCheck {
		errs = append(errs, pipeline.BadKey("schema", "%q is not one of %s, %s", c.Schema, schemaCreate, schemaCheck))
	}
	if c.Cluster.Name == "" && (c.Cluster.Sharded || c.Cluster.ReplicatedDatabase) {
		errs = append(errs, pipeline.BadKey("cluster::name", "must not be empty with sharded or replicated_database"))
	}
	if c.DedupWindow < minDedupWindow || c.DedupWindow > maxDedupWindow {
		errs = append(errs, pipeline.BadKey("dedup_window", "must be between %d and %d", minDedupWindow, maxDedupWindow))
	}
	if c.Retention.Spans < 0 {
		errs = append(errs, pipeline.BadKey("retention::spans", "must not be negative"))
	}
	if c.Retention.Statistics < 0 {
		errs = append(errs, pipeline.BadKey("retention::statistics", "must not be negative"))
	}
	return errors.Join(errs...)
}

// statistics returns how long statistics are stored. If they expired before the spans, counts for
// the time between would be wrong.
func (r *RetentionConfig) statistics() time.Duration {
	if r.Spans == 0 || r.Statistics == 0 {
		return 0
	}
	return time.Duration(max(r.Spans, r.Statistics))
}

// tables returns the options for package schema.
func (c *Config) tables() schema.Options {
	o := schema.Options{Database: c.Database, Shape: schema.Single, Cluster: c.Cluster.Name, Fsync: c.Fsync, DedupWindow: c.DedupWindow,
		ReplicatedDatabase: c.Cluster.ReplicatedDatabase, Spans: time.Duration(c.Retention.Spans),
		Statistics: c.Retention.statistics()}
	switch {
	case c.Cluster.Sharded:
		o.Shape = schema.Sharded
	case c.Cluster.Name != "":
		o.Shape = schema.Replicated
	}
	return o
}

// Tables are the tables of a configuration and a connection to their server, for commands.
type Tables struct {
	*schema.Schema
	Server schema.Server
	db     *db.DB
}

// OpenTables returns the tables of a configuration. It opens no connection before the first
// statement. The caller must call Close.
func OpenTables(c *Config) (*Tables, error) {
	tables, err := schema.New(c.tables())
	if err != nil {
		return nil, err
	}
	d, err := db.New(pipeline.Settings{Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: pipeline.SystemEnv(),
		Report: func(error) {}}, c.Config, db.Dialect{})
	if err != nil {
		return nil, err
	}
	if err := d.Start(context.Background()); err != nil {
		return nil, err
	}
	return &Tables{Schema: tables, Server: d, db: d}, nil
}

// Close closes the connections.
func (t *Tables) Close() error { return t.db.Close() }
