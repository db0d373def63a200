// Package remotestorage implements the `remote_storage` extension, the remote storage server: other
// processes read and write a store over gRPC, with remote storage v1 (Jaeger's model) and v2
// (OTLP), on port 17271. Other processes of this program can use everything that the store
// supports.
package remotestorage

import (
	"context"
	"errors"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Store is a store that can be served. Other interfaces that it supports (tracestore.Edges, Metrics
// and others) are served, too.
type Store interface {
	pipeline.Consumer
	tracestore.Reader
	tracestore.Catalog
}

// Archive is a store that can be served as an archive, which cannot be searched.
type Archive interface {
	pipeline.Consumer
	tracestore.Reader
}

// Config is the configuration of the extension.
type Config struct {
	server.GRPCConfig
	server.RequestLimits
	Storage      pipeline.Ref[Store]   `yaml:"storage" doc:"Exporter whose store is served." ref:"a span store"`
	Archive      pipeline.Ref[Archive] `yaml:"archive_storage" doc:"Exporter whose store is served as the archive, which exists only in v1 of the protocol." ref:"a span store"`
	TenantHeader string                `yaml:"tenant_header" doc:"Metadata key that contains the tenant of a call, if tenancy is not enabled. Calls without the key, or all calls if this is empty, belong to the default tenant."`
	QueryTimeout pipeline.Duration     `yaml:"query_timeout" doc:"Maximum duration of a read, including the time that the client takes to receive the response."`
	MaxPatterns  pipeline.Duration     `yaml:"max_pattern_time" doc:"Maximum CPU time of the regular expressions of a read, estimated from a sample of matches. A read that takes longer ends as with query_timeout."`
	MaxQueries   int                   `yaml:"max_queries" doc:"Maximum number of concurrent reads. Further reads are refused as overloaded; clients can retry them."`
	MaxLimit     int                   `yaml:"max_limit" doc:"Maximum number of traces in a response, whatever limit the request has."`
	MaxScanned   int                   `yaml:"max_scanned_spans" doc:"Maximum number of spans that the store examines for a search."`
	AllowDelete  bool                  `yaml:"allow_delete" doc:"Whether clients may delete spans, if the store allows it too."`
	MaxFollowers int                   `yaml:"max_followers" doc:"Maximum number of clients, such as query services with a live tail, that receive spans as they are stored. 0 disables this."`
	MaxFeed      pipeline.ByteSize     `yaml:"max_feed_size" doc:"Maximum size of the spans buffered for one follower, which counts toward service.limits.query_memory. A slow follower misses further spans and gets their number."`
	MaxChunk     pipeline.ByteSize     `yaml:"max_chunk_size" doc:"Maximum size of one message in a response, exceeded only by a larger span. Clients accept 4MiB by default."`
}

const (
	defaultLimit = 100
	minChunk     = 4 << 10
	maxChunk     = 64 << 20
)

func defaults() Config {
	return Config{
		GRPCConfig:    server.DefaultGRPCConfig("localhost:17271"),
		RequestLimits: server.DefaultRequestLimits(),
		TenantHeader:  "x-tenant",
		QueryTimeout:  pipeline.Duration(time.Minute),
		MaxPatterns:   pipeline.Duration(tracestore.DefaultPatternTime),
		MaxQueries:    100,
		MaxLimit:      10_000,
		MaxScanned:    50_000_000,
		MaxFollowers:  64,
		MaxFeed:       4 << 20,
		MaxChunk:      1 << 20,
	}
}

var _ pipeline.Validator = (*Config)(nil)

// Validate checks the values of the configuration.
func (c *Config) Validate() error {
	var errs []error
	if !c.Storage.IsSet() {
		errs = append(errs, pipeline.BadKey("storage", "must be set to the exporter whose store is served"))
	}
	if c.QueryTimeout <= 0 {
		errs = append(errs, pipeline.BadKey("query_timeout", "must be above 0"))
	}
	if c.MaxPatterns <= 0 {
		errs = append(errs, pipeline.BadKey("max_pattern_time", "must be above 0"))
	}
	for _, b := range []struct {
		key string
		n   int
	}{{"max_queries", c.MaxQueries}, {"max_limit", c.MaxLimit}, {"max_scanned_spans", c.MaxScanned}} {
		if b.n <= 0 {
			errs = append(errs, pipeline.BadKey(b.key, "must be above 0, not %d", b.n))
		}
	}
	if c.MaxFollowers < 0 {
		errs = append(errs, pipeline.BadKey("max_followers", "must not be below 0"))
	}
	if c.MaxFeed <= 0 {
		errs = append(errs, pipeline.BadKey("max_feed_size", "must be above 0, not %s", c.MaxFeed))
	}
	if c.MaxChunk < minChunk || c.MaxChunk > maxChunk {
		errs = append(errs, pipeline.BadKey("max_chunk_size", "must be from %s to %s, not %s",
			pipeline.ByteSize(minChunk), pipeline.ByteSize(maxChunk), c.MaxChunk))
	}
	return errors.Join(errs...)
}

// BypassesTenants implements [pipeline.TenantBypass].
func (c *Config) BypassesTenants() (problem string, allowed bool) {
	if c.SeparatesTenants() || c.AuthenticatesClients() || c.TenantHeader == "" {
		return "", true
	}
	return "every client can read and write the spans of any tenant; set tenancy for this listener, auth or tls.client_ca_file " +
		"to restrict its clients, or tenant_header to \"\" to serve only the default tenant", false
}

// Factory returns the factory for the `remote_storage` extension.
func Factory() pipeline.Factory {
	return pipeline.Extension("remote_storage", defaults, newExtension).
		Doc("Remote storage server: lets other processes read and write a store over gRPC (v2 and v1).")
}

// extension is a gRPC server with the services of both versions and our own service.
type extension struct {
	server  *server.GRPC
	writers *writers
}

var (
	_ pipeline.Starter     = (*extension)(nil)
	_ pipeline.Stopper     = (*extension)(nil)
	_ pipeline.Replaceable = (*extension)(nil)
	_ pipeline.Addressed   = (*extension)(nil)
	_ pipeline.Querier     = (*extension)(nil)

	_ pipeline.TenantBypass = (*Config)(nil)
)

func newExtension(set pipeline.Settings, c Config) (*extension, error) {
	srv, err := server.NewGRPC(set, "grpc", c.GRPCConfig)
	if err != nil {
		return nil, err
	}
	tenants := tenants{header: c.TenantHeader}
	if c.SeparatesTenants() {
		tenants.header = ""
	}
	w := newWriters(set, c, tenants, srv.CountRefused)
	r := &readers{tenants: tenants, timeout: c.QueryTimeout.Std(), patterns: c.MaxPatterns.Std(), slots: make(chan struct{}, c.MaxQueries),
		memory: set.QueryMemory, limit: c.MaxLimit, scanned: c.MaxScanned, chunk: int(c.MaxChunk)}
	var archive Archive
	if c.Archive.IsSet() {
		archive = c.Archive.Get()
	}
	registerV1(srv, r, w, c.Storage.Get(), archive)
	registerV2(srv, r, w, c.Storage.Get())
	registerStore(srv, r, newFeeds(&c, w.stopping), c.Storage.Get(), &c)
	return &extension{server: srv, writers: w}, nil
}

// Start opens the listener.
func (e *extension) Start(ctx context.Context) error { return e.server.Start(ctx) }

// HandOver hands over the listener.
func (e *extension) HandOver(ctx context.Context) { e.server.HandOver(ctx) }

// Stop finishes running calls and ends streams of spans.
func (e *extension) Stop(ctx context.Context) error {
	e.writers.stop()
	err := e.server.Stop(ctx)
	e.writers.streams.Wait()
	return err
}

// Addr returns the address of the listener `grpc`.
func (e *extension) Addr(name string) string {
	if name != "grpc" {
		return ""
	}
	return e.server.Addr()
}

// QueryMemory returns 0: the extension has no key for it.
func (e *extension) QueryMemory() int64 { return 0 }
