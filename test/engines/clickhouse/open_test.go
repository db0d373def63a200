package clickhouse_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// started is what all exporters can do.
type started interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// openOn returns a started exporter that uses a database of a server. The end of the test stops it.
// edit may change its configuration and settings.
func openOn(tb testing.TB, s *engine.Server, database string, edit func(*clickhouse.Config, *pipeline.Settings)) any {
	tb.Helper()
	return openBy(tb, clickhouse.Factory(), s, database, edit)
}

// openBy is openOn for an exporter of a factory.
func openBy(
	tb testing.TB, f pipeline.Factory, s *engine.Server, database string, edit func(*clickhouse.Config, *pipeline.Settings),
) any {
	tb.Helper()
	config := f.Defaults().(*clickhouse.Config)
	config.Endpoints, config.Protocol, config.Database = []string{s.HTTPAddr()}, "http", database
	config.AllowDelete = true
	set := pipeline.Settings{Logger: zaptest.NewLogger(tb), Metrics: prometheus.NewRegistry(), Env: pipeline.SystemEnv(),
		Report: func(err error) {
			if err != nil {
				tb.Errorf("the exporter is degraded: %v", err)
			}
		}}
	if edit != nil {
		edit(config, &set)
	}
	e, err := f.Build(set, config, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if err := e.(started).Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := e.(started).Stop(ctx); err != nil {
			tb.Errorf("stopping the exporter: %v", err)
		}
	})
	return e
}

// open returns a started exporter on a new database of the shared server.
func open(tb testing.TB) any {
	tb.Helper()
	s := engine.Shared(tb)
	return openOn(tb, s, s.Database(tb), nil)
}
