// Package query serves stored traces to people and clients: the HTTP JSON API of port 16686 over any store that can be read.
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
	Storage      pipeline.Ref[Store] `yaml:"storage" doc:"The exporter whose stored traces are served." ref:"a span store"`
	HTTP         server.HTTPConfig   `yaml:"http" doc:"The listener of the HTTP JSON API."`
	BasePath     string              `yaml:"base_path" doc:"Path under which all routes live, for example /tracing."`
	QueryTimeout pipeline.Duration   `yaml:"query_timeout" doc:"How long the store may take; what a search found by then is returned."`
	MaxLimit     int                 `yaml:"max_limit" doc:"Greatest number of traces in one answer, whatever a request asks for."`
	MaxTraceSize int                 `yaml:"max_trace_size" doc:"Greatest number of spans shown of a trace; it says when it has more."`
	MaxScanned   int                 `yaml:"max_scanned_spans" doc:"Greatest number of spans that the store examines for a search."`
}

func defaults() Config {
	return Config{
		HTTP:         server.DefaultHTTPConfig("localhost:16686"),
		BasePath:     "/",
		QueryTimeout: pipeline.Duration(30 * time.Second),
		MaxLimit:     10_000,
		MaxTraceSize: 100_000,
		MaxScanned:   50_000_000,
	}
}

var _ pipeline.Validator = (*Config)(nil)

// Validate checks that there is a store, the base path and the bounds.
func (c *Config) Validate() error {
	var errs []error
	if !c.Storage.IsSet() {
		errs = append(errs, pipeline.BadKey("storage", "must be set: name the exporter whose traces are served"))
	}
	if _, err := cleanBasePath(c.BasePath); err != nil {
		errs = append(errs, err)
	}
	if c.QueryTimeout <= 0 {
		errs = append(errs, pipeline.BadKey("query_timeout", "must be above 0"))
	}
	return errors.Join(append(errs,
		above0("max_limit", c.MaxLimit),
		above0("max_trace_size", c.MaxTraceSize),
		above0("max_scanned_spans", c.MaxScanned))...)
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
		Doc("Serves stored traces to people and clients over the HTTP JSON API.")
}

// query is the extension: a handler behind a listener.
type query struct {
	http *server.HTTP
}

var (
	_ pipeline.Starter   = (*query)(nil)
	_ pipeline.Stopper   = (*query)(nil)
	_ pipeline.Addressed = (*query)(nil)
)

func newQuery(set pipeline.Settings, c Config) (*query, error) {
	base, err := cleanBasePath(c.BasePath)
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(set.Metrics)
	if err != nil {
		return nil, err
	}
	h := &handler{
		store:   c.Storage.Get(),
		limits:  limits{timeout: c.QueryTimeout.Std(), traces: c.MaxLimit, traceSize: c.MaxTraceSize, scanned: c.MaxScanned},
		logger:  set.Logger,
		metrics: m,
		now:     set.Env.Now,
	}
	srv, err := server.NewHTTP(set, "http", c.HTTP, h.routes(base))
	if err != nil {
		return nil, err
	}
	return &query{http: srv}, nil
}

// Start opens the listener.
func (q *query) Start(ctx context.Context) error { return q.http.Start(ctx) }

// Stop finishes the requests that are being answered.
func (q *query) Stop(ctx context.Context) error { return q.http.Stop(ctx) }

// Addr returns the address of the listener `http`.
func (q *query) Addr(name string) string {
	if name != "http" {
		return ""
	}
	return q.http.Addr()
}
