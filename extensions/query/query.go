package query

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/grpcapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/pageapi"
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
	Storage        pipeline.Ref[Store]                  `yaml:"storage" doc:"The exporter whose stored traces are served." ref:"a span store"`
	ArchiveStorage pipeline.Ref[Archive]                `yaml:"archive_storage" doc:"Another exporter, to which people archive traces; absent: there is no archive." ref:"a span store that takes spans"`
	HTTP           server.HTTPConfig                    `yaml:"http" doc:"The listener of the HTTP JSON API."`
	GRPC           pipeline.Optional[server.GRPCConfig] `yaml:"grpc" doc:"The listener of the gRPC services; without it there is none."`

	BasePath      string             `yaml:"base_path" doc:"Path under which all routes live, for example /tracing."`
	UI            UIConfig           `yaml:"ui" doc:"The web UI."`
	QueryTimeout  pipeline.Duration  `yaml:"query_timeout" doc:"How long the store may take; what a search found by then is returned."`
	MaxLimit      int                `yaml:"max_limit" doc:"Greatest number of traces in one answer, whatever a request asks for."`
	MaxTraceSize  int                `yaml:"max_trace_size" doc:"Greatest number of spans shown of a trace; it says when it has more."`
	MaxScanned    int                `yaml:"max_scanned_spans" doc:"Greatest number of spans that the store examines for a search."`
	MaxAggregated int                `yaml:"max_aggregated_spans" doc:"Greatest number of spans that the store examines one by one to count spans by their values; of more it takes a sample, and the answer says which share that is."`
	MaxQueries    int                `yaml:"max_concurrent_queries" doc:"How many queries may be answered at once; further ones are told to come back later."`
	MaxMemory     pipeline.ByteSize  `yaml:"max_answer_memory" doc:"How much memory all answers together may take, spans that wait for followers included; further ones are told to come back later."`
	PassTokens    bool               `yaml:"bearer_token_propagation" doc:"Pass the bearer tokens of requests on to the store, where that is remote."`
	Tail          pageapi.TailConfig `yaml:"tail" doc:"Spans that a page shows as they are stored."`
	MaxClockSkew  pipeline.Duration  `yaml:"max_clock_skew_adjustment" doc:"By how much times are moved at most where the clocks of hosts disagree; 0: never, a warning tells by how much."`
}

func defaults() Config {
	return Config{
		HTTP:          server.DefaultHTTPConfig("localhost:16686"),
		GRPC:          pipeline.Absent(grpcapi.DefaultConfig()),
		BasePath:      "/",
		QueryTimeout:  pipeline.Duration(30 * time.Second),
		MaxLimit:      10_000,
		MaxTraceSize:  200_000,
		MaxScanned:    50_000_000,
		MaxAggregated: 200_000,
		Tail:          pageapi.DefaultTailConfig(),
		MaxQueries:    256,
		MaxMemory:     512 << 20,
	}
}

var _ pipeline.Validator = (*Config)(nil)

// Validate checks that there is a store, that the archive is another one, the base path and the bounds.
func (c *Config) Validate() error {
	var errs []error
	if !c.Storage.IsSet() {
		errs = append(errs, pipeline.BadKey("storage", "must be set: name the exporter whose traces are served"))
	}
	if c.ArchiveStorage.IsSet() && c.ArchiveStorage.ID() == c.Storage.ID() {
		errs = append(errs, pipeline.BadKey("archive_storage", "must be another exporter than storage"))
	}
	if _, err := cleanBasePath(c.BasePath); err != nil {
		errs = append(errs, err)
	}
	if c.QueryTimeout <= 0 {
		errs = append(errs, pipeline.BadKey("query_timeout", "must be above 0"))
	}
	if c.MaxClockSkew < 0 {
		errs = append(errs, pipeline.BadKey("max_clock_skew_adjustment", "must not be below 0"))
	}
	return errors.Join(append(errs,
		above0("max_limit", c.MaxLimit),
		above0("max_trace_size", c.MaxTraceSize),
		above0("max_scanned_spans", c.MaxScanned),
		above0("max_aggregated_spans", c.MaxAggregated),
		above0("max_concurrent_queries", c.MaxQueries),
		above0("max_answer_memory", int(c.MaxMemory)))...)
}

func above0(key string, n int) error {
	if n > 0 {
		return nil
	}
	return pipeline.BadKey(key, "must be above 0, not %d", n)
}

// cleanBasePath returns what routes begin with: "" for the root, else a path without a slash at its end. It must need no escaping.
func cleanBasePath(written string) (string, error) {
	p := strings.TrimSuffix(written, "/")
	if p == "" {
		return "", nil
	}
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/"
	if p[0] != '/' || p == "/" || path.Clean(p) != p || strings.Trim(p, allowed) != "" {
		return "", pipeline.BadKey("base_path", "%q is not a base path; write / or, for example, /tracing", written)
	}
	return p, nil
}

// Factory makes extensions of type query.
func Factory() pipeline.Factory {
	return pipeline.Extension("query", defaults, newQuery).
		Doc("Serves stored traces to people and clients over the HTTP JSON API and gRPC.")
}

// query is the extension.
type query struct {
	listeners server.Listeners // `http`, and `grpc` if it is configured
	ui        *ui
	tails     *pageapi.Tails
	memory    *pipeline.Budget
}

var (
	_ pipeline.Starter    = (*query)(nil)
	_ pipeline.Stopper    = (*query)(nil)
	_ pipeline.Addressed  = (*query)(nil)
	_ pipeline.MemoryUser = (*query)(nil)
)

func newQuery(set pipeline.Settings, c Config) (*query, error) {
	base, err := cleanBasePath(c.BasePath)
	if err != nil {
		return nil, err
	}
	memory := pipeline.NewBudget(int64(c.MaxMemory))
	b, err := newBackend(set, &c, memory)
	if err != nil {
		return nil, err
	}
	_, metrics := b.Store().(tracestore.Metrics)
	pages := newUI(set, c.UI, base, capabilities{Archive: b.HasArchive(), Metrics: metrics})
	tails := pageapi.NewTails(c.Tail)
	routes := newRoutes(b, pages, pageapi.Options{Version: pages.version, Tails: tails, Tenancy: hasTenancy(c.HTTP)})
	if c.PassTokens {
		routes = httpapi.PassToken(set.Logger, routes)
	}
	srv, err := server.NewHTTP(set, "http", c.HTTP, routes)
	if err != nil {
		return nil, err
	}
	q := &query{listeners: server.Listeners{"http": srv}, ui: pages, tails: tails, memory: memory}
	if cfg, on := c.GRPC.Get(); on {
		if q.listeners["grpc"], err = grpcapi.New(set, cfg, b); err != nil {
			return nil, err
		}
	}
	return q, nil
}

func newBackend(set pipeline.Settings, c *Config, memory *pipeline.Budget) (*core.Backend, error) {
	o := core.Options{
		Store: c.Storage.Get(),
		Limits: core.Limits{
			Timeout: c.QueryTimeout.Std(), Traces: c.MaxLimit, TraceSize: c.MaxTraceSize, Scanned: c.MaxScanned,
			Aggregated: c.MaxAggregated, Queries: c.MaxQueries, ClockSkew: c.MaxClockSkew.Std(),
		},
		Memory:  memory,
		Logger:  set.Logger,
		Metrics: set.Metrics,
		Now:     set.Env.Now,
	}
	if c.ArchiveStorage.IsSet() {
		o.Archive = c.ArchiveStorage.Get()
	}
	return core.New(o)
}

// Start reads the files of the web UI and opens the listeners.
func (q *query) Start(ctx context.Context) error {
	if err := q.ui.open(); err != nil {
		return err
	}
	if err := q.listeners.Start(ctx); err != nil {
		return errors.Join(err, q.ui.close())
	}
	return nil
}

// Addr returns the address of a listener, or "" if it is not open.
func (q *query) Addr(listener string) string { return q.listeners.Addr(listener) }

// MaxMemory returns the maximum number of bytes that all answers together hold.
func (q *query) MaxMemory() int64 { return q.memory.Limit() }

// hasTenancy reports whether requests must name their tenant.
func hasTenancy(c server.HTTPConfig) bool {
	t, on := c.Tenancy.Get()
	return on && t.Enabled
}

// Stop disconnects the clients that watch spans, and waits for the other requests.
func (q *query) Stop(ctx context.Context) error {
	q.tails.Close()
	return errors.Join(q.listeners.Stop(ctx), q.ui.close())
}
