// Package admin serves operators: metrics, health, and which program this is.
//
//	/metrics   Prometheus text format, uncompressed, never OpenMetrics: names stay as they are documented
//	/version   the build, as JSON
//	/ and any other path: the health of the process, 200 when it takes work and 503 before and after
//
// It starts before everything else and stops after everything else, so that the last scrape sees the final counters.
package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
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
	return pipeline.Extension("admin", defaults, build).Doc("Serves metrics and health of the process over HTTP.")
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
	a.http, err = server.NewHTTP(set, "http", c.HTTPConfig, handler(set.Process, set.Env.Now))
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

func handler(p pipeline.Process, now func() time.Time) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(p.Gatherer(), promhttp.HandlerOpts{DisableCompression: true}))
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) {
		b := p.Build()
		answer(w, http.StatusOK, "text/plain; charset=utf-8", versionJSON{b.Commit, b.Version, b.Date})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		h := p.Health()
		if !h.Ready {
			answer(w, http.StatusServiceUnavailable, "application/json", healthJSON{Status: "Server not available"})
			return
		}
		answer(w, http.StatusOK, "application/json",
			healthJSON{Status: "Server available", UpSince: h.Since, Uptime: now().Sub(h.Since).String()})
	})
	return mux
}

type healthJSON struct {
	Status  string    `json:"status"`
	UpSince time.Time `json:"upSince"`
	Uptime  string    `json:"uptime"`
}

type versionJSON struct {
	GitCommit  string `json:"gitCommit"`
	GitVersion string `json:"gitVersion"`
	BuildDate  string `json:"buildDate"`
}

func answer(w http.ResponseWriter, status int, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body) //nolint:errcheck // the client is gone
}
