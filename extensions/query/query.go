// Package query serves stored traces to people and clients, from any store that can be read: the HTTP JSON API of port 16686, and the gRPC
// services of port 16685.
package query

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Store is a store that can be queried: it reads traces, and lists what there is to search for.
type Store interface {
	tracestore.Reader
	tracestore.Catalog
}

// Config configures the extension.
type Config struct {
	Storage        pipeline.Ref[Store]                  `yaml:"storage" doc:"The exporter whose stored traces are served." ref:"a span store"`
	ArchiveStorage pipeline.Ref[Archive]                `yaml:"archive_storage" doc:"Another exporter, to which people archive traces; absent: there is no archive." ref:"a span store that takes spans"`
	HTTP           server.HTTPConfig                    `yaml:"http" doc:"The listener of the HTTP JSON API."`
	GRPC           pipeline.Optional[server.GRPCConfig] `yaml:"grpc" doc:"The listener of the gRPC services; without it there is none."`

	BasePath      string            `yaml:"base_path" doc:"Path under which all routes live, for example /tracing."`
	UI            UIConfig          `yaml:"ui" doc:"The web UI."`
	QueryTimeout  pipeline.Duration `yaml:"query_timeout" doc:"How long the store may take; what a search found by then is returned."`
	MaxLimit      int               `yaml:"max_limit" doc:"Greatest number of traces in one answer, whatever a request asks for."`
	MaxTraceSize  int               `yaml:"max_trace_size" doc:"Greatest number of spans shown of a trace; it says when it has more."`
	MaxScanned    int               `yaml:"max_scanned_spans" doc:"Greatest number of spans that the store examines for a search."`
	MaxAggregated int               `yaml:"max_aggregated_spans" doc:"Greatest number of spans that the store examines one by one to count spans by their values; of more it takes a sample, and the answer says which share that is."`
	MaxQueries    int               `yaml:"max_concurrent_queries" doc:"How many queries may be answered at once; further ones are told to come back later."`
	MaxMemory     pipeline.ByteSize `yaml:"max_answer_memory" doc:"How much memory all answers together may take, spans that wait for followers included; further ones are told to come back later."`
	PassTokens    bool              `yaml:"bearer_token_propagation" doc:"Pass the bearer tokens of requests on to the store, where that is remote."`
	Tail          TailConfig        `yaml:"tail" doc:"Spans that a page shows as they are stored."`
	MaxClockSkew  pipeline.Duration `yaml:"max_clock_skew_adjustment" doc:"By how much times are moved at most where the clocks of hosts disagree; 0: never, a warning tells by how much."`
}

func defaults() Config {
	return Config{
		HTTP:          server.DefaultHTTPConfig("localhost:16686"),
		GRPC:          pipeline.Absent(defaultGRPC()),
		BasePath:      "/",
		QueryTimeout:  pipeline.Duration(30 * time.Second),
		MaxLimit:      10_000,
		MaxTraceSize:  200_000,
		MaxScanned:    50_000_000,
		MaxAggregated: 200_000,
		Tail:          defaultTail(),
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

// query is the extension: handlers behind listeners.
type query struct {
	server.Listeners // `http`, and `grpc` if it is configured
	ui               *ui
	tails            *tails
	memory           *pipeline.Budget
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
	b, err := newBackend(set, &c)
	if err != nil {
		return nil, err
	}
	_, rates := b.store.(tracestore.Metrics)
	pages := newUI(set, c.UI, base, capabilities{Archive: b.archive != nil, Metrics: rates})
	h := &handler{backend: b, ui: pages, tails: newTails(c.Tail), tenancy: keepsTenants(c.HTTP)}
	routes := h.routes(base)
	if c.PassTokens {
		routes = withToken(set.Logger, routes)
	}
	srv, err := server.NewHTTP(set, "http", c.HTTP, routes)
	if err != nil {
		return nil, err
	}
	q := &query{Listeners: server.Listeners{"http": srv}, ui: pages, tails: h.tails, memory: b.memory}
	if cfg, on := c.GRPC.Get(); on {
		if q.Listeners["grpc"], err = newGRPC(set, cfg, b); err != nil {
			return nil, err
		}
	}
	return q, nil
}

func newBackend(set pipeline.Settings, c *Config) (*backend, error) {
	m, err := newMetrics(set.Metrics)
	if err != nil {
		return nil, err
	}
	b := &backend{
		store: c.Storage.Get(),
		limits: limits{timeout: c.QueryTimeout.Std(), traces: c.MaxLimit, traceSize: c.MaxTraceSize, scanned: c.MaxScanned, aggregated: c.MaxAggregated,
			queries: c.MaxQueries, clockSkew: c.MaxClockSkew.Std()},
		memory:  pipeline.NewBudget(int64(c.MaxMemory)),
		logger:  set.Logger,
		metrics: m,
		now:     set.Env.Now,
	}
	if c.ArchiveStorage.IsSet() {
		b.archive = c.ArchiveStorage.Get()
	}
	return b, nil
}

// Start reads the pages and opens the listeners.
func (q *query) Start(ctx context.Context) error {
	if err := q.ui.open(); err != nil {
		return err
	}
	if err := q.Listeners.Start(ctx); err != nil {
		return errors.Join(err, q.ui.close())
	}
	return nil
}

// MaxMemory returns the most that the traces in all answers may take.
func (q *query) MaxMemory() int64 { return q.memory.Limit() }

// keepsTenants reports whether requests must name their tenant.
func keepsTenants(c server.HTTPConfig) bool {
	t, on := c.Tenancy.Get()
	return on && t.Enabled
}

// Stop lets those go who watch, and finishes the other requests that are being answered.
func (q *query) Stop(ctx context.Context) error {
	q.tails.close()
	return errors.Join(q.Listeners.Stop(ctx), q.ui.close())
}
