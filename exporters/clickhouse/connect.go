package clickhouse

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/schema"
	"github.com/tracing-backend/tracing/pipeline"
)

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
