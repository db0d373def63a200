package query

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/grpcapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/semconv"
	"github.com/tracing-backend/tracing/extensions/query/internal/tempo"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/demodata"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/deployment"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/linktemplate"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/live"
	"github.com/tracing-backend/tracing/internal/processview"
	"github.com/tracing-backend/tracing/internal/webui"
	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Store is a store that can be queried.
type Store = core.Store

// Archive is a store to which users copy traces that they want to keep longer.
type Archive = core.Archive

// Config configures the extension.
type Config struct {
	Storage        pipeline.Ref[Store]                  `yaml:"storage" doc:"Exporter whose stored traces are served." ref:"a span store"`
	ArchiveStorage pipeline.Ref[Archive]                `yaml:"archive_storage" doc:"Exporter to which users archive traces, other than storage. If empty, traces cannot be archived." ref:"a span store that takes spans"`
	HTTP           server.HTTPConfig                    `yaml:"http" doc:"Listener of the HTTP APIs, the web UI, and streaming searches over gRPC."`
	GRPC           pipeline.Optional[server.GRPCConfig] `yaml:"grpc" doc:"Listener of the gRPC query APIs. If absent, they are not served."`

	BasePath      string            `yaml:"base_path" doc:"Prefix of the paths of all HTTP routes, for example /tracing."`
	UI            UIConfig          `yaml:"ui" doc:"Web UI."`
	QueryTimeout  pipeline.Duration `yaml:"query_timeout" doc:"Maximum time of a query in the store. A search that takes longer returns the traces found so far."`
	MaxPatterns   pipeline.Duration `yaml:"max_pattern_time" doc:"Maximum CPU time of the regular expressions of a query, estimated from a sample of matches. A search that takes longer returns the traces found so far."`
	MaxLimit      int               `yaml:"max_limit" doc:"Maximum number of traces in a response, whatever limit the request has."`
	MaxTraceSize  int               `yaml:"max_trace_size" doc:"Maximum number of spans of a trace in a response. Larger traces are truncated, with a warning."`
	MaxScanned    int               `yaml:"max_scanned_spans" doc:"Maximum number of spans that the store examines for a search."`
	MaxAggregated int               `yaml:"max_aggregated_spans" doc:"Maximum number of spans examined to count spans: 1/25 of it if whole traces are read, 4 times it for metrics by service, name, kind, status and duration. Of more, a sample is examined; the response states its share."`
	MaxErrors     int               `yaml:"max_error_spans" doc:"Maximum number of newest spans with errors that are read for examples of error groups, or to count them if the store cannot."`
	MaxErrorScan  int               `yaml:"max_error_scanned_spans" doc:"Maximum number of spans that are examined to count all error groups. If there are more, a sample is examined."`
	MaxQueries    int               `yaml:"max_concurrent_queries" doc:"Maximum number of concurrent queries. Further queries are refused as overloaded. One client address or tenant can use as many for searches and counts as remain free, so at most half. An eighth is reserved for lists of names and single traces."`
	MaxNames      int               `yaml:"max_names" doc:"Maximum number of names, for each tenant, in a list of services or operations. Further names can be listed by prefix."`
	MetricsRange  pipeline.Duration `yaml:"max_metrics_range" doc:"Maximum time range of a metrics query."`
	MetricsPoints int               `yaml:"max_metrics_points" doc:"Maximum number of samples in each series of a metrics query, at most 10000."`
	MetricsSeries int               `yaml:"max_metrics_series" doc:"Maximum number of series in the response to a metrics query. If there are more, the response says that it is partial."`
	MaxMemory     pipeline.ByteSize `yaml:"max_answer_memory" doc:"Deprecated name of service.limits.query_memory, which takes precedence. 0 leaves it unset."`
	PassTokens    bool              `yaml:"bearer_token_propagation" doc:"Whether to forward the bearer tokens of requests to remote storage servers."`
	Baseline      pipeline.Duration `yaml:"baseline_period" doc:"Time before the start of a trace in which the web UI looks for usual durations and a typical trace."`
	Tail          live.Config       `yaml:"tail" doc:"Live tail, with which clients watch spans as they are stored."`
	MaxClockSkew  pipeline.Duration `yaml:"max_clock_skew_adjustment" doc:"Maximum clock-skew adjustment between hosts. 0 disables it; affected spans then have a warning with the skew."`

	Peers         pipeline.Optional[deployment.PeersConfig] `yaml:"peers" doc:"Other processes that the pages /status and /sampling also show."`
	Demo          pipeline.Optional[demodata.Config]        `yaml:"demo" doc:"Demo data that the web UI offers to load while nothing is stored. Every client of the HTTP listener can then fill an empty store."`
	Names         semconv.Config                            `yaml:"attribute_names" doc:"Names of attributes that are one field in searches, counts and lists."`
	Links         []linktemplate.Link                       `yaml:"links" doc:"Links from traces, spans, services and searches to common systems, shown in the web UI."`
	LinkTemplates []linktemplate.Template                   `yaml:"link_templates" doc:"Links from traces, spans, attributes, services and searches to any other systems."`
}

func defaults() Config {
	return Config{
		HTTP:          server.DefaultHTTPConfig("localhost:16686"),
		GRPC:          pipeline.Absent(grpcapi.DefaultConfig()),
		BasePath:      "/",
		QueryTimeout:  pipeline.Duration(30 * time.Second),
		MaxPatterns:   pipeline.Duration(tracestore.DefaultPatternTime),
		MaxLimit:      10_000,
		MaxTraceSize:  200_000,
		MaxScanned:    50_000_000,
		MaxAggregated: 5_000_000,
		MaxErrors:     3000,
		MaxErrorScan:  10_000_000,
		Baseline:      pipeline.Duration(24 * time.Hour),
		Tail:          live.DefaultConfig(),
		MaxQueries:    256,
		MaxNames:      10_000,
		MetricsRange:  pipeline.Duration(24 * time.Hour),
		MetricsPoints: maxMetricsPoints,
		MetricsSeries: 1000,
		Peers:         pipeline.Absent(deployment.DefaultPeersConfig()),
		Demo:          pipeline.Absent(demodata.DefaultConfig()),
		Names:         semconv.DefaultConfig(),
	}
}

// maxMetricsPoints is the maximum of max_metrics_points. A series may have two more samples,
// because the time range is extended to whole steps.
const maxMetricsPoints = 10_000

var _ pipeline.Validator = (*Config)(nil)

// Validate checks the stores, the base path and the limits.
func (c *Config) Validate() error {
	var errs []error
	if !c.Storage.IsSet() {
		errs = append(errs, pipeline.BadKey("storage", "must be set to the exporter whose traces are served"))
	}
	if c.ArchiveStorage.IsSet() && c.ArchiveStorage.ID() == c.Storage.ID() {
		errs = append(errs, pipeline.BadKey("archive_storage", "must be a different exporter than storage"))
	}
	if _, err := cleanBasePath(c.BasePath); err != nil {
		errs = append(errs, err)
	}
	if c.UI.LinkPreviews && c.HTTP.SeparatesTenants() {
		errs = append(errs, pipeline.BadKey("ui::link_previews", "is not possible with tenancy, because chat programs name no tenant"))
	}
	if c.QueryTimeout <= 0 {
		errs = append(errs, pipeline.BadKey("query_timeout", "must be above 0"))
	}
	if c.MaxPatterns <= 0 {
		errs = append(errs, pipeline.BadKey("max_pattern_time", "must be above 0"))
	}
	if c.Baseline <= 0 {
		errs = append(errs, pipeline.BadKey("baseline_period", "must be above 0"))
	}
	if c.MetricsRange <= 0 {
		errs = append(errs, pipeline.BadKey("max_metrics_range", "must be above 0"))
	}
	if c.MetricsPoints > maxMetricsPoints {
		errs = append(errs, pipeline.BadKey("max_metrics_points", "must be at most %d, not %d", maxMetricsPoints, c.MetricsPoints))
	}
	if c.MaxClockSkew < 0 {
		errs = append(errs, pipeline.BadKey("max_clock_skew_adjustment", "must not be below 0"))
	}
	return errors.Join(append(errs,
		above0("max_limit", c.MaxLimit),
		above0("max_trace_size", c.MaxTraceSize),
		above0("max_scanned_spans", c.MaxScanned),
		above0("max_aggregated_spans", c.MaxAggregated),
		above0("max_error_spans", c.MaxErrors),
		above0("max_error_scanned_spans", c.MaxErrorScan),
		above0("max_concurrent_queries", c.MaxQueries),
		above0("max_names", c.MaxNames),
		above0("max_metrics_points", c.MetricsPoints),
		above0("max_metrics_series", c.MetricsSeries))...)
}

// above0 returns an error for a number that is not positive.
func above0(key string, n int) error {
	if n > 0 {
		return nil
	}
	return pipeline.BadKey(key, "must be above 0, not %d", n)
}

// cleanBasePath returns the path that precedes routes: "" for the root, or a path without a
// trailing slash. The path must not need escaping.
func cleanBasePath(written string) (string, error) {
	p := strings.TrimSuffix(written, "/")
	if p == "" {
		return "", nil
	}
	if !webui.IsBasePath(p) {
		return "", pipeline.BadKey("base_path", "%q is not a base path; write / or, for example, /tracing", written)
	}
	return p, nil
}

// Factory returns the factory of the extension, which also serves the documentation: documents has
// the files of the repository that internal/docsite reads. If it is nil, no documentation is
// served.
func Factory(documents fs.FS) pipeline.Factory {
	create := func(set pipeline.Settings, c Config) (*query, error) { return newQuery(set, c, documents) }
	return pipeline.Extension("query", defaults, create).
		Doc("Serves stored traces to users and client programs over HTTP and gRPC.")
}

// query is the extension.
type query struct {
	listeners server.Listeners // `http`, and `grpc` if it is configured
	ui        *ui
	tails     *live.API
	memory    int64             // max_answer_memory
	peers     *deployment.Peers // nil if there are none
	demo      *demodata.API     // nil if it is not configured
}

var (
	_ pipeline.Starter     = (*query)(nil)
	_ pipeline.Stopper     = (*query)(nil)
	_ pipeline.Replaceable = (*query)(nil)
	_ pipeline.Addressed   = (*query)(nil)
	_ pipeline.Querier     = (*query)(nil)
)

func newQuery(set pipeline.Settings, c Config, documents fs.FS) (*query, error) {
	base, err := cleanBasePath(c.BasePath)
	if err != nil {
		return nil, err
	}
	b, err := newBackend(set, &c)
	if err != nil {
		return nil, err
	}
	pages := newUI(set, &c, base, b.HasArchive(), func(ctx context.Context) bool {
		_, ok := core.StoreAs[tracestore.Metrics](ctx, b)
		return ok
	})
	pages.documents, pages.preview = documents, previews(b)
	tails := live.New(b, c.Tail)
	o := uiapi.Options{Version: pages.boot.Version, Tail: c.Tail, Tenancy: c.HTTP.SeparatesTenants(),
		Links: append(linktemplate.Templates(c.Links), c.LinkTemplates...)}
	if set.Process != nil { // nil in tests
		o.Intake = set.Process.Intake
	}
	peers, self, err := newPeers(set, &c)
	if err != nil {
		return nil, err
	}
	others := deployment.New(b, self, peers, o.Tenancy).Routes()
	demo := newDemo(set, &c, b, pages.boot.TenantHeader)
	if demo != nil {
		o.Demo = demo.Possible
		others = append(others, demo.Routes()...)
	}
	mux := newRoutes(b, pages, o, tails, others...)
	routes := httpapi.Compress(mux)
	var ofCalls []grpc.ServerOption
	if c.PassTokens {
		routes, ofCalls = httpapi.PassToken(set.Logger, routes), grpcapi.PassTokens(set.Logger)
	}
	srv, err := server.NewHTTP(set, "http", c.HTTP, routes)
	if err != nil {
		return nil, err
	}
	srv.SetUnsafe(func(r *http.Request) bool { return r.URL.Path == base+live.Path }) // takes one of a few streams
	srv.SetPublic(func(r *http.Request) bool { return pages.isPublic(mux, r) })
	calls, err := srv.AddGRPC(grpcapi.MaxMessageMiB, ofCalls...)
	if err != nil {
		return nil, err
	}
	tempo.RegisterStreaming(calls, b)
	calls.AddDescriptors(wire.Originals())
	q := &query{listeners: server.Listeners{"http": srv}, ui: pages, tails: tails, memory: int64(c.MaxMemory), peers: peers, demo: demo}
	if cfg, on := c.GRPC.Get(); on {
		queries, err := grpcapi.New(set, cfg, b, ofCalls...)
		if err != nil {
			return nil, err
		}
		tempo.RegisterStreaming(queries, b)
		q.listeners["grpc"] = queries
	}
	return q, nil
}

// newPeers returns the client of the other processes (nil if there are none) and this process (nil
// in tests).
func newPeers(set pipeline.Settings, c *Config) (peers *deployment.Peers, self processview.Process, err error) {
	if set.Process != nil {
		self = set.Process
	}
	if p, on := c.Peers.Get(); on && len(p.Endpoints) > 0 {
		peers, err = deployment.NewPeers(set, p)
	}
	return peers, self, err
}

// newDemo returns the API that loads demo data, or nil.
func newDemo(set pipeline.Settings, c *Config, b *core.Backend, tenantHeader string) *demodata.API {
	cfg, on := c.Demo.Get()
	if !on || set.Process == nil { // nil in tests
		return nil
	}
	return demodata.New(b, demodata.Options{Config: cfg, TenantHeader: tenantHeader, Intake: set.Process.Intake, Rand: set.Env.Rand})
}

func newBackend(set pipeline.Settings, c *Config) (*core.Backend, error) {
	names, err := semconv.New(c.Names)
	if err != nil {
		return nil, err
	}
	o := core.Options{
		Names: names,
		Store: c.Storage.Get(),
		Limits: core.Limits{
			Timeout: c.QueryTimeout.Std(), PatternTime: c.MaxPatterns.Std(), Traces: c.MaxLimit, TraceSize: c.MaxTraceSize, Scanned: c.MaxScanned,
			Aggregated: c.MaxAggregated, Errors: c.MaxErrors, ErrorScan: c.MaxErrorScan, Queries: c.MaxQueries, Names: c.MaxNames,
			MetricsRange: c.MetricsRange.Std(), MetricsPoints: c.MetricsPoints, MetricsSeries: c.MetricsSeries,
			ClockSkew: c.MaxClockSkew.Std(), Baseline: c.Baseline.Std(),
		},
		Memory:  set.QueryMemory,
		Logger:  set.Logger,
		Metrics: set.Metrics,
		Tracer:  set.Tracer,
		Now:     set.Env.Now,
	}
	if c.ArchiveStorage.IsSet() {
		o.Archive = c.ArchiveStorage.Get()
		o.ArchiveWriter = set.Counted(o.Archive)
	}
	return core.New(o)
}

// Start reads the files of the web UI and opens the listeners.
func (q *query) Start(ctx context.Context) error {
	if err := q.ui.open(); err != nil {
		return err
	}
	if q.peers != nil {
		if err := q.peers.Start(ctx); err != nil {
			return errors.Join(fmt.Errorf("peers: %w", err), q.ui.close())
		}
	}
	if err := q.listeners.Start(ctx); err != nil {
		return errors.Join(err, q.stopPeers(ctx), q.ui.close())
	}
	return nil
}

// Addr returns the address of a listener, or "" if it is not open.
func (q *query) Addr(listener string) string { return q.listeners.Addr(listener) }

// QueryMemory returns the value of the deprecated key max_answer_memory.
func (q *query) QueryMemory() int64 { return q.memory }

// HandOver hands over the listeners.
func (q *query) HandOver(ctx context.Context) { q.listeners.HandOver(ctx) }

// Stop disconnects the clients that watch spans, ends the loading of demo data, and waits for the
// other requests.
func (q *query) Stop(ctx context.Context) error {
	q.tails.Close()
	if q.demo != nil {
		q.demo.Close()
	}
	return errors.Join(q.listeners.Stop(ctx), q.stopPeers(ctx), q.ui.close())
}

func (q *query) stopPeers(ctx context.Context) error {
	if q.peers == nil {
		return nil
	}
	return q.peers.Stop(ctx)
}
