// Package otlp receives spans and log records in the OpenTelemetry protocol, over gRPC and over
// HTTP in protobuf and JSON. It validates protobuf requests without decoding them into objects and
// passes on their bytes. JSON is decoded into objects first.
package otlp

import (
	"context"
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// Defaults of the protocol.
const (
	defaultGRPCEndpoint = "localhost:4317"
	defaultHTTPEndpoint = "localhost:4318"
	defaultTracesPath   = "/v1/traces"
	defaultLogsPath     = "/v1/logs"
)

type config struct {
	Protocols protocols `yaml:"protocols" doc:"Protocols to serve; at least one is required."`
	server.RequestLimits
	MaxDepth int `yaml:"max_nesting_depth" doc:"Maximum nesting depth of attribute values. 1 allows scalars only, 2 also allows arrays of scalars."`
}

type protocols struct {
	GRPC pipeline.Optional[server.GRPCConfig] `yaml:"grpc" doc:"Listener for OTLP over gRPC."`
	HTTP pipeline.Optional[httpConfig]        `yaml:"http" doc:"Listener for OTLP over HTTP, in protobuf or JSON."`
}

type httpConfig struct {
	server.HTTPConfig
	TracesPath string `yaml:"traces_url_path" doc:"URL path to which clients send spans."`
	LogsPath   string `yaml:"logs_url_path" doc:"URL path to which clients send log records, for pipelines of logs."`
}

func defaults() config {
	lim := otlpdata.DefaultLimits()
	return config{
		Protocols: protocols{
			GRPC: pipeline.Absent(server.DefaultGRPCConfig(defaultGRPCEndpoint)),
			HTTP: pipeline.Absent(httpConfig{server.DefaultHTTPConfig(defaultHTTPEndpoint), defaultTracesPath, defaultLogsPath}),
		},
		RequestLimits: server.DefaultRequestLimits(),
		MaxDepth:      lim.Depth,
	}
}

// Validate checks that at least one protocol is configured, and the nesting depth.
func (c *config) Validate() error {
	var errs []error
	_, grpc := c.Protocols.GRPC.Get()
	_, http := c.Protocols.HTTP.Get()
	if !grpc && !http {
		errs = append(errs, pipeline.BadKey("protocols", "must have grpc, http or both; an empty block uses the defaults: protocols: {grpc: }"))
	}
	const maxMaxDepth = 1000 // readers of a value are recursive
	if c.MaxDepth < 1 || c.MaxDepth > maxMaxDepth {
		errs = append(errs, pipeline.BadKey("max_nesting_depth", "must be from 1 to %d, not %d", maxMaxDepth, c.MaxDepth))
	}
	return errors.Join(errs...)
}

// Validate checks the paths. The loader validates the embedded config itself.
func (c *httpConfig) Validate() error {
	var errs []error
	for _, p := range []struct{ key, path, example string }{
		{"traces_url_path", c.TracesPath, defaultTracesPath}, {"logs_url_path", c.LogsPath, defaultLogsPath},
	} {
		if !strings.HasPrefix(p.path, "/") {
			errs = append(errs, pipeline.BadKey(p.key, "%q must start with a slash, for example %s", p.path, p.example))
		}
	}
	if c.LogsPath == c.TracesPath || c.LogsPath == metricsPath {
		errs = append(errs, pipeline.BadKey("logs_url_path", "must differ from traces_url_path and "+metricsPath))
	}
	return errors.Join(errs...)
}

// Factory returns the factory of receivers of type otlp.
func Factory() pipeline.Factory {
	return pipeline.Receiver("otlp", defaults, newReceiver).Logs().
		Doc("Receives spans and log records in the OpenTelemetry protocol, over gRPC and over HTTP in protobuf and JSON.")
}

type receiver struct {
	server.Listeners             // provides Start, Stop and Addr
	http             *httpServer // nil if not configured
	set              pipeline.Settings
	next             pipeline.Consumer
	limits           otlpdata.Limits
	rejected         *prometheus.CounterVec // items of other signals
}

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	r := &receiver{Listeners: server.Listeners{}, set: set, next: next, limits: c.Limits(), rejected: newRejectedCounter()}
	if err := set.Metrics.Register(r.rejected); err != nil {
		return nil, err
	}
	r.limits.Depth = c.MaxDepth
	if cfg, on := c.Protocols.GRPC.Get(); on {
		s, err := newGRPCServer(r, cfg)
		if err != nil {
			return nil, err
		}
		r.Listeners["grpc"] = s.listener
	}
	if cfg, on := c.Protocols.HTTP.Get(); on {
		s, err := newHTTPServer(r, cfg)
		if err != nil {
			return nil, err
		}
		r.http, r.Listeners["http"] = s, s.listener
	}
	return r, nil
}

// consume passes on b and returns how many items were rejected and why. It calls countRefused if b
// cannot be passed on.
func (r *receiver) consume(ctx context.Context, b *otlpdata.Batch, countRefused func(reason string)) (
	rejected int, message string, _ error,
) {
	walk, err := r.reserve("bytes of memory to walk the request", int64(b.WalkMemory()))
	if err != nil {
		countRefused(server.ReasonOf(err))
		return 0, "", err
	}
	defer walk.Release()
	return outcome(r.next.Consume(ctx, b))
}

// reserve reserves memory for a request. It returns a limit error (too large, do not retry) if size
// exceeds the whole budget.
func (r *receiver) reserve(what string, size int64) (*pipeline.Reservation, error) {
	budget := r.set.Budget
	if limit := budget.Limit(); limit > 0 && size > limit {
		return nil, &otlpdata.LimitError{Limit: what, Max: int(limit), TooLarge: true}
	}
	return budget.Reserve(size)
}

func (r *receiver) meta(ctx context.Context, signal otlpdata.Signal, transport string) otlpdata.Meta {
	return otlpdata.Meta{Signal: signal, Tenant: server.Tenant(ctx), Format: "otlp", Transport: transport, Received: r.set.Env.Now(),
		Metadata: server.Metadata(ctx)}
}
