package canary

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

const (
	// metricsBudget limits the bytes of requests for metrics, which usually have no body.
	metricsBudget = 1 << 20
	// metricsStop is the time for running requests to finish when the listener closes.
	metricsStop = 2 * time.Second
)

// serveMetrics starts a listener; stop closes it.
func (t tool) serveMetrics(ctx context.Context, at pipeline.Endpoint, registry *prometheus.Registry, log *zap.Logger) (func(), error) {
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	cfg := server.DefaultHTTPConfig(at)
	cfg.MaxRequestBodySize = metricsBudget / 4
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true, ErrorLog: zap.NewStdLog(log)}))
	srv, err := server.NewHTTP(pipeline.Settings{
		ID: pipeline.ID{Type: "canary"}, Logger: log, Metrics: registry, Env: t.env, Budget: pipeline.NewBudget(metricsBudget),
		Report: func(error) {},
	}, "metrics", cfg, mux)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if err := srv.Start(ctx); err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	log.Info("serving metrics", zap.String("http.host-port", srv.Addr()))
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), metricsStop)
		defer cancel()
		if err := srv.Stop(ctx); err != nil {
			log.Warn("metrics listener did not stop cleanly", zap.Error(err))
		}
	}, nil
}
