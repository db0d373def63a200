// Package admin serves operators: metrics, health, and what the process is and does.
//
//	/metrics        Prometheus text format, uncompressed, never OpenMetrics: names stay as they are documented
//	/status         the state of every pipeline and component, as JSON; 503 while the process starts and stops
//	/healthz        200 as long as the process answers
//	/readyz         200 when it takes work, 503 before and after
//	/version        the build, as JSON
//	/log-level      GET tells the level of the log, PUT {"level":"debug"} changes it until the end of the process
//	/debug/vars     variables of package expvar, as JSON
//	/debug/pprof/   profiles
//	/exporters/ID/  the routes of a component that has some (also /receivers/ID/, /extensions/ID/): pipeline.Administered
//	/ and any other path: the health of the process, 200 when it takes work and 503 before and after
//
// The command line, which may hold secrets, is shown nowhere.
//
// It starts before everything else and stops after everything else, so that the last scrape sees the final counters.
package admin

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// Config is the configuration of the extension.
type Config struct {
	server.HTTPConfig
	Linger pipeline.Duration `yaml:"linger" doc:"How long to go on answering after everything else has stopped, so that a last scrape sees the final counters."`
}

func defaults() Config {
	return Config{HTTPConfig: server.DefaultHTTPConfig("localhost:14269")}
}

// Factory makes the extension, type admin.
func Factory() pipeline.Factory {
	return pipeline.Extension("admin", defaults, build).Doc("Serves metrics, health, status and profiles of the process over HTTP.")
}

type admin struct {
	http   *server.HTTP
	linger time.Duration
	log    *zap.Logger
}

var (
	_ pipeline.Observer  = (*admin)(nil)
	_ pipeline.Stopper   = (*admin)(nil)
	_ pipeline.Addressed = (*admin)(nil)
)

func build(set pipeline.Settings, c Config) (*admin, error) {
	a := &admin{linger: c.Linger.Std(), log: set.Logger}
	var err error
	a.http, err = server.NewHTTP(set, "http", c.HTTPConfig, newHandler(set.Process, set.Env.Now, set.Logger))
	return a, err
}

// ObservesProcess makes this an Observer.
func (a *admin) ObservesProcess() {}

// Start listens.
func (a *admin) Start(ctx context.Context) error {
	if err := a.http.Start(ctx); err != nil {
		return err
	}
	a.log.Info("Admin server started", zap.String("http.host-port", a.http.Addr()), zap.String("health-status", "unavailable"))
	return nil
}

// Stop lingers, then closes the listener.
func (a *admin) Stop(ctx context.Context) error {
	if a.linger > 0 {
		t := time.NewTimer(a.linger)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return a.http.Stop(ctx)
}

// Addr returns the address of listener `http`.
func (a *admin) Addr(listener string) string {
	if listener != "http" {
		return ""
	}
	return a.http.Addr()
}
