// Package spanmetrics implements the `span_metrics` extension. It counts the stored spans by
// service, operation and kind, and the calls between services, as counters and histograms for
// Prometheus: on its own listener, and by remote write. They have the names and labels of the
// connectors `spanmetrics` and `servicegraph` of the OpenTelemetry Collector.
//
// The numbers come from the statistics of the store, which it asks at an interval. A counter begins
// when the extension starts, and grows by what the store has counted since the previous interval.
package spanmetrics

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

type config struct {
	server.HTTPConfig
	Storage      pipeline.Ref[tracestore.Reader]      `yaml:"storage" doc:"Exporter whose store is counted." ref:"a span store"`
	Tenant       string                               `yaml:"tenant" doc:"Tenant whose spans are counted. Empty means the default tenant. For several tenants, use several extensions."`
	Interval     pipeline.Duration                    `yaml:"interval" doc:"Interval at which the store is asked, at most a quarter of max_span_delay. Scrape at least as often."`
	MaxDelay     pipeline.Duration                    `yaml:"max_span_delay" doc:"Spans are counted if they are stored within this time after their start. Whole minutes."`
	MaxSeries    int                                  `yaml:"max_series" doc:"Maximum number of combinations of service, operation and span kind, and of connections between services. Further ones are counted together, with the name other."`
	MaxIdle      pipeline.Duration                    `yaml:"max_idle" doc:"Time without a span after which a series ends. 0 disables the limit."`
	Namespace    string                               `yaml:"namespace" doc:"First part of the names of calls_total and duration_milliseconds."`
	Buckets      []pipeline.Duration                  `yaml:"buckets" doc:"Upper bounds of the buckets of histograms, ascending."`
	ServiceGraph bool                                 `yaml:"service_graph" doc:"Whether calls between services are counted, too."`
	GraphDelay   pipeline.Duration                    `yaml:"service_graph_delay" doc:"Time after which calls between services are counted. Spans that arrive later are not part of them."`
	Exemplars    int                                  `yaml:"exemplars" doc:"Maximum number of spans of each kind that are looked up in each interval as exemplars. 0 disables exemplars."`
	Timeout      pipeline.Duration                    `yaml:"timeout" doc:"Maximum duration of asking the store, and of remote write, at each interval."`
	MaxScanned   int                                  `yaml:"max_scanned_spans" doc:"Maximum number of spans of each kind that are examined to find exemplars."`
	MaxScrapes   int                                  `yaml:"max_concurrent_scrapes" doc:"Maximum number of concurrent responses with the series. Further requests get 503."`
	RemoteWrite  pipeline.Optional[remoteWriteConfig] `yaml:"remote_write" doc:"Sends the series to a Prometheus remote write 1.0 server at each interval."`
}

// maxDelay limits max_span_delay.
const maxDelay = 24 * time.Hour

func defaults() config {
	c := config{
		HTTPConfig:   server.DefaultHTTPConfig("localhost:9464"),
		Interval:     pipeline.Duration(15 * time.Second),
		MaxDelay:     pipeline.Duration(10 * time.Minute),
		MaxSeries:    10_000,
		MaxIdle:      pipeline.Duration(24 * time.Hour),
		Namespace:    "traces_span_metrics",
		ServiceGraph: true,
		GraphDelay:   pipeline.Duration(time.Minute),
		Exemplars:    100,
		MaxScanned:   100_000,
		Timeout:      pipeline.Duration(30 * time.Second),
		MaxScrapes:   4,
		RemoteWrite:  pipeline.Absent(defaultRemoteWrite()),
	}
	for _, ms := range []int{2, 4, 6, 8, 10, 50, 100, 200, 400, 800, 1000, 1400, 2000, 5000, 10_000, 15_000} {
		c.Buckets = append(c.Buckets, pipeline.Duration(time.Duration(ms)*time.Millisecond))
	}
	return c
}

var (
	namespaces = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	labelNames = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

// Validate checks the values of the configuration.
func (c *config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) { errs = append(errs, pipeline.BadKey(key, format, args...)) }
	if !c.Storage.IsSet() {
		bad("storage", "must be set to the exporter whose store is counted")
	}
	if c.Interval < pipeline.Duration(time.Second) {
		bad("interval", "must be at least 1s, not %s", c.Interval)
	}
	if callIntervals*c.Interval > c.MaxDelay {
		bad("interval", "must be at most a quarter of max_span_delay, because calls between services are counted at every fourth interval")
	}
	if d := c.MaxDelay.Std(); d < time.Minute || d > maxDelay || d%time.Minute != 0 {
		bad("max_span_delay", "must be whole minutes from 1m to 24h, not %s", c.MaxDelay)
	}
	if c.MaxSeries < 1 {
		bad("max_series", "must be above 0, not %d", c.MaxSeries)
	}
	if idle := c.MaxIdle; idle != 0 && idle < 2*c.MaxDelay {
		bad("max_idle", "must be at least twice max_span_delay, or 0 to disable it")
	}
	if !namespaces.MatchString(c.Namespace) {
		bad("namespace", "%q is not the beginning of a metric name", c.Namespace)
	}
	distinct := slices.Compact(slices.Clone(c.Buckets))
	if len(c.Buckets) == 0 || c.Buckets[0] <= 0 || !slices.IsSorted(c.Buckets) || len(distinct) < len(c.Buckets) {
		bad("buckets", "must be ascending durations above 0")
	}
	if c.Exemplars < 0 || c.Exemplars > tracestore.MaxExemplars {
		bad("exemplars", "must be from 0 to %d, not %d", tracestore.MaxExemplars, c.Exemplars)
	}
	if c.GraphDelay < 0 {
		bad("service_graph_delay", "must not be below 0")
	}
	if c.Timeout <= 0 {
		bad("timeout", "must be above 0")
	}
	if c.MaxScrapes < 1 {
		bad("max_concurrent_scrapes", "must be above 0, not %d", c.MaxScrapes)
	}
	if c.SeparatesTenants() {
		bad("tenancy", "is not supported here; tenant selects whose spans are counted")
	}
	if c.MaxScanned < 1 {
		bad("max_scanned_spans", "must be above 0, not %d", c.MaxScanned)
	}
	return errors.Join(errs...)
}

// Factory returns the factory for the `span_metrics` extension.
func Factory() pipeline.Factory {
	return pipeline.Extension("span_metrics", defaults, newExtension).
		Doc("Provides calls, errors and durations of the stored spans, and the calls between services, to Prometheus.")
}

type extension struct {
	set    pipeline.Settings
	cfg    config
	log    *pipeline.RepeatLog
	http   *server.HTTP
	writer *remoteWriter // nil without remote_write
	runs   *prometheus.CounterVec

	bounds []time.Duration // of buckets

	mu    sync.Mutex
	spans *family[spanKey]
	calls *family[edgeKey]

	registry *prometheus.Registry // of the series

	// Of the goroutine that updates:
	since   time.Time        // when the store was last asked successfully; zero before that
	from    time.Time        // from when on it was asked
	called  time.Time        // until when calls between services are counted
	asked   time.Time        // until when the store was asked for them
	crowded map[spanKey]bool // keys of all operations of a service; see noteCrowded

	stop    context.CancelFunc // of the background goroutine
	stopped chan struct{}
}

var (
	_ pipeline.Starter   = (*extension)(nil)
	_ pipeline.Stopper   = (*extension)(nil)
	_ pipeline.Addressed = (*extension)(nil)
)

func newExtension(set pipeline.Settings, c config) (*extension, error) {
	e := &extension{set: set, cfg: c, log: pipeline.NewRepeatLog(set), spans: newFamily(c.MaxSeries, otherSpans),
		calls: newFamily(c.MaxSeries, otherEdges), registry: prometheus.NewRegistry(), crowded: map[spanKey]bool{},
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_span_metrics_collections_total",
			Help: "How often the store was asked for the numbers of span metrics, by result: complete, incomplete or failed."}, []string{"result"})}
	for _, b := range c.Buckets {
		e.bounds = append(e.bounds, b.Std())
	}
	count := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tracing_span_metrics_series",
		Help: "Number of combinations of service, operation and kind, and of connections, that span metrics count."}, e.count)
	for _, m := range []prometheus.Collector{e.runs, count} {
		if err := set.Metrics.Register(m); err != nil {
			return nil, err
		}
	}
	if err := e.registry.Register(e); err != nil {
		return nil, err
	}
	if w, on := c.RemoteWrite.Get(); on {
		var err error
		if e.writer, err = newRemoteWriter(set, w); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.registry,
		promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: c.MaxScrapes}))
	var err error
	e.http, err = server.NewHTTP(set, "http", c.HTTPConfig, mux)
	return e, err
}

// Start opens the listener and begins to count.
func (e *extension) Start(ctx context.Context) error {
	if e.writer != nil {
		if err := e.writer.client.Start(ctx); err != nil {
			return err
		}
	}
	if err := e.http.Start(ctx); err != nil {
		return err
	}
	ctx, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	e.stopped = make(chan struct{})
	go func() {
		defer close(e.stopped)
		e.run(ctx)
	}()
	return nil
}

// run collects at each interval until ctx ends.
func (e *extension) run(ctx context.Context) {
	ticker := time.NewTicker(e.cfg.Interval.Std())
	defer ticker.Stop()
	for {
		e.set.Report(e.update(ctx))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// update collects and writes once.
func (e *extension) update(ctx context.Context) error {
	err := e.inTime(ctx, e.collect)
	if ctx.Err() != nil {
		return nil // stopped
	}
	if err != nil {
		e.runs.WithLabelValues("failed").Inc()
	}
	if e.writer != nil {
		err = errors.Join(err, e.inTime(ctx, e.write))
	}
	return err
}

// inTime calls f with the configured timeout.
func (e *extension) inTime(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout.Std())
	defer cancel()
	return f(ctx)
}

func (e *extension) write(ctx context.Context) error {
	return e.writer.write(ctx, e.registry, e.set.Env.Now())
}

// Stop closes the listener. If there is a remote write server, it counts the spans that were stored
// last, and sends their numbers; a failure is only logged.
func (e *extension) Stop(ctx context.Context) error {
	e.stop()
	<-e.stopped
	defer e.log.Close()
	err := e.http.Stop(ctx)
	if e.writer != nil {
		lost := e.inTime(ctx, e.collect)
		e.addNext()
		if lost = errors.Join(lost, e.inTime(ctx, e.write)); lost != nil {
			e.set.Logger.Warn("span metrics since the last interval were not sent", zap.Error(lost))
		}
		err = errors.Join(err, e.writer.client.Stop(ctx))
	}
	return err
}

// addNext adds what new series have counted.
func (e *extension) addNext() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spans.addNext()
	e.calls.addNext()
}

// Addr returns the address of the listener `http`.
func (e *extension) Addr(listener string) string {
	if listener != "http" {
		return ""
	}
	return e.http.Addr()
}
