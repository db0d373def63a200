// Package remotestorage lets other processes read and write a store over gRPC, as the query services and collectors of the field do: remote
// storage v1 (native model) and v2 (OTLP), port 17271.
package remotestorage

import (
	"context"
	"errors"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Store is a store that can be served: it takes spans, reads traces, and lists what there is to search for. Calls between services are served
// where it is tracestore.Dependencies as well.
type Store interface {
	pipeline.Consumer
	tracestore.Reader
	tracestore.Catalog
}

// Archive is a store that can be served as an archive, which is not searched.
type Archive interface {
	pipeline.Consumer
	tracestore.Reader
}

// Config configures the extension.
type Config struct {
	server.GRPCConfig
	server.RequestLimits
	Storage      pipeline.Ref[Store]   `yaml:"storage" doc:"The exporter whose store is served." ref:"a span store"`
	Archive      pipeline.Ref[Archive] `yaml:"archive_storage" doc:"The exporter whose store is served as the archive of v1; v2 has none." ref:"a span store"`
	TenantHeader string                `yaml:"tenant_header" doc:"Metadata that says whose spans a call is about, where tenancy is not enabled; calls without it are about the default tenant's, and so are all if this is empty."`
	QueryTimeout pipeline.Duration     `yaml:"query_timeout" doc:"How long one read may take, the client's part of it included."`
	MaxQueries   int                   `yaml:"max_queries" doc:"How many reads may be answered at once; further ones are refused, to be tried again."`
	MaxLimit     int                   `yaml:"max_limit" doc:"Greatest number of traces in one answer, whatever a request asks for."`
	MaxScanned   int                   `yaml:"max_scanned_spans" doc:"Greatest number of spans that the store examines for a search."`
	MaxChunk     pipeline.ByteSize     `yaml:"max_chunk_size" doc:"Greatest size of one message of an answer, unless a single span is larger; clients take 4MiB by default."`
}

const (
	defaultLimit = 100
	leastChunk   = 4 << 10
	mostChunk    = 64 << 20
)

func defaults() Config {
	return Config{
		GRPCConfig:    server.DefaultGRPCConfig("localhost:17271"),
		RequestLimits: server.DefaultRequestLimits(),
		TenantHeader:  "x-tenant",
		QueryTimeout:  pipeline.Duration(time.Minute),
		MaxQueries:    100,
		MaxLimit:      10_000,
		MaxScanned:    50_000_000,
		MaxChunk:      1 << 20,
	}
}

var _ pipeline.Validator = (*Config)(nil)

// Validate checks that there is a store, and the bounds.
func (c *Config) Validate() error {
	var errs []error
	if !c.Storage.IsSet() {
		errs = append(errs, pipeline.BadKey("storage", "must be set: name the exporter whose store is served"))
	}
	if c.QueryTimeout <= 0 {
		errs = append(errs, pipeline.BadKey("query_timeout", "must be above 0"))
	}
	for _, b := range []struct {
		key string
		n   int
	}{{"max_queries", c.MaxQueries}, {"max_limit", c.MaxLimit}, {"max_scanned_spans", c.MaxScanned}} {
		if b.n <= 0 {
			errs = append(errs, pipeline.BadKey(b.key, "must be above 0, not %d", b.n))
		}
	}
	if c.MaxChunk < leastChunk || c.MaxChunk > mostChunk {
		errs = append(errs, pipeline.BadKey("max_chunk_size", "must be from %s to %s, not %s",
			pipeline.ByteSize(leastChunk), pipeline.ByteSize(mostChunk), c.MaxChunk))
	}
	return errors.Join(errs...)
}

// Factory makes extensions of type remote_storage.
func Factory() pipeline.Factory {
	return pipeline.Extension("remote_storage", defaults, newExtension).
		Doc("Lets other processes read and write a store over gRPC.")
}

// extension is a listener and the services behind it.
type extension struct {
	*server.GRPC
	writers *writers
}

var (
	_ pipeline.Starter   = (*extension)(nil)
	_ pipeline.Stopper   = (*extension)(nil)
	_ pipeline.Addressed = (*extension)(nil)
)

func newExtension(set pipeline.Settings, c Config) (*extension, error) {
	srv, err := server.NewGRPC(set, "grpc", c.GRPCConfig)
	if err != nil {
		return nil, err
	}
	tenants := tenants{header: c.TenantHeader}
	if t, on := c.Tenancy.Get(); on && t.Enabled {
		tenants.header = ""
	}
	w := newWriters(set, c, tenants, srv.CountRefused)
	r := &readers{tenants: tenants, timeout: c.QueryTimeout.Std(), slots: make(chan struct{}, c.MaxQueries),
		limit: c.MaxLimit, scanned: c.MaxScanned, chunk: int(c.MaxChunk)}
	var archive Archive
	if c.Archive.IsSet() {
		archive = c.Archive.Get()
	}
	registerV1(srv, r, w, c.Storage.Get(), archive)
	registerV2(srv, r, w, c.Storage.Get())
	return &extension{srv, w}, nil
}

// Stop finishes the calls that are being answered, and ends streams of spans.
func (e *extension) Stop(ctx context.Context) error {
	e.writers.stop()
	err := e.GRPC.Stop(ctx)
	e.writers.streams.Wait()
	return err
}

// Addr returns the address of the listener `grpc`.
func (e *extension) Addr(name string) string {
	if name != "grpc" {
		return ""
	}
	return e.GRPC.Addr()
}
