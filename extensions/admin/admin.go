// Package admin implements the `admin` extension. It serves metrics, health and diagnostics of the
// process to operators:
//
//	/metrics        Prometheus text format, never compressed and never OpenMetrics
//	/status         state of every pipeline and component as JSON; 503 during start and stop
//	/status/details everything that the page /status shows of a process, as JSON
//	/sampling       sampling strategies with their sources and latest clients, as JSON
//	/sampling/explain?service=&operation=&trace=  what happens to a trace in this process
//	/healthz        200 as long as the process responds
//	/readyz         200 when the process accepts work, otherwise 503
//	/version        build information as JSON
//	/log-level      GET returns the log level; PUT {"level":"debug"} changes it for this process
//	/debug/vars     variables of package expvar as JSON
//	/debug/pprof/   profiles
//	/exporters/ID/  routes of a component, also /receivers/ID/ and /extensions/ID/
//	other paths     200 while the process runs; 503 while it starts and stops
//
// Routes that show the memory of the process, or change what it does or stores, need credentials,
// unless the request is sent to a loopback address: /log-level, /debug/ and the routes of
// components.
//
// It never shows the command line, which may contain secrets. It starts before all other components
// and stops after them, so that the last scrape gets the final counters.
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
	OperationTimeout pipeline.Duration `yaml:"operation_timeout" doc:"Maximum duration of a request to a route of a component, such as a deletion, instead of read_timeout and write_timeout."`
	Linger           pipeline.Duration `yaml:"linger" doc:"Time for which this extension serves after all other components have stopped, for a last scrape."`
}

func defaults() Config {
	return Config{HTTPConfig: server.DefaultHTTPConfig("localhost:14269"), OperationTimeout: pipeline.Duration(10 * time.Minute)}
}

// Validate checks the keys that HTTPConfig does not have.
func (c *Config) Validate() error {
	if c.OperationTimeout <= 0 {
		return pipeline.BadKey("operation_timeout", "must be above 0, because a stalled client would otherwise hold its connection forever")
	}
	return nil
}

// Factory returns the factory for the `admin` extension.
func Factory() pipeline.Factory {
	return pipeline.Extension("admin", defaults, build).Doc("Serves the metrics, health, status and profiles of the process over HTTP.")
}

type admin struct {
	http     *server.HTTP
	linger   time.Duration
	log      *zap.Logger
	replaced bool // HandOver was called: another listener serves the metrics of the process
}

var (
	_ pipeline.Observer    = (*admin)(nil)
	_ pipeline.Stopper     = (*admin)(nil)
	_ pipeline.Replaceable = (*admin)(nil)
	_ pipeline.Addressed   = (*admin)(nil)
)

func build(set pipeline.Settings, c Config) (*admin, error) {
	a := &admin{linger: c.Linger.Std(), log: set.Logger}
	var err error
	a.http, err = server.NewHTTP(set, "http", c.HTTPConfig, newHandler(set.Process, set.Env.Now, set.Logger, c.OperationTimeout.Std()))
	if err != nil {
		return nil, err
	}
	a.http.SetPrivileged(isPrivileged)
	return a, nil
}

// ObservesProcess implements pipeline.Observer.
func (a *admin) ObservesProcess() {}

// Start opens the listener.
func (a *admin) Start(ctx context.Context) error {
	if err := a.http.Start(ctx); err != nil {
		return err
	}
	a.log.Info("Admin server started", zap.String("http.host-port", a.http.Addr()), zap.String("health-status", "unavailable"))
	return nil
}

// HandOver hands over the listener.
func (a *admin) HandOver(ctx context.Context) {
	a.replaced = true
	a.http.HandOver(ctx)
}

// Stop waits for the configured linger time or the end of ctx, then closes the listener. If another
// admin extension has taken over the listener, it does not wait.
func (a *admin) Stop(ctx context.Context) error {
	if a.linger > 0 && !a.replaced {
		t := time.NewTimer(a.linger)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return a.http.Stop(ctx)
}

// Addr returns the address of the listener `http`.
func (a *admin) Addr(listener string) string {
	if listener != "http" {
		return ""
	}
	return a.http.Addr()
}
