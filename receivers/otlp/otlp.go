// Package otlp receives spans in the OpenTelemetry protocol, over gRPC and over HTTP in protobuf and JSON. Requests are validated as
// bytes and handed on as bytes; only JSON is decoded into objects on the way.
package otlp

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// The endpoints that the protocol has registered ports for.
const (
	defaultGRPCEndpoint = "localhost:4317"
	defaultHTTPEndpoint = "localhost:4318"
	defaultTracesPath   = "/v1/traces"
)

type config struct {
	Protocols protocols `yaml:"protocols" doc:"What to listen for; at least one."`
	server.RequestLimits
	MaxDepth int `yaml:"max_nesting_depth" doc:"How deep attribute values may nest; 1 is a scalar, 2 an array of scalars."`
}

type protocols struct {
	GRPC pipeline.Optional[server.GRPCConfig] `yaml:"grpc" doc:"OTLP over gRPC."`
	HTTP pipeline.Optional[httpConfig]        `yaml:"http" doc:"OTLP over HTTP, in protobuf or JSON."`
}

type httpConfig struct {
	server.HTTPConfig
	TracesPath string `yaml:"traces_url_path" doc:"Path of the URL that takes spans."`
}

func defaults() config {
	lim := otlpdata.DefaultLimits()
	return config{
		Protocols: protocols{
			GRPC: pipeline.Absent(server.DefaultGRPCConfig(defaultGRPCEndpoint)),
			HTTP: pipeline.Absent(httpConfig{server.DefaultHTTPConfig(defaultHTTPEndpoint), defaultTracesPath}),
		},
		RequestLimits: server.DefaultRequestLimits(),
		MaxDepth:      lim.Depth,
	}
}

// Validate reports mistakes between keys.
func (c *config) Validate() error {
	var errs []error
	_, grpc := c.Protocols.GRPC.Get()
	_, http := c.Protocols.HTTP.Get()
	if !grpc && !http {
		errs = append(errs, pipeline.BadKey("protocols", "needs grpc, http or both; an empty block takes the defaults: protocols: {grpc: }"))
	}
	const deepest = 1000 // readers of a value recurse
	if c.MaxDepth < 1 || c.MaxDepth > deepest {
		errs = append(errs, pipeline.BadKey("max_nesting_depth", "must be from 1 to %d, not %d", deepest, c.MaxDepth))
	}
	return errors.Join(errs...)
}

// Validate reports mistakes in the keys that are not the listener's.
func (c *httpConfig) Validate() error {
	if !strings.HasPrefix(c.TracesPath, "/") {
		return pipeline.BadKey("traces_url_path", "%q must begin with a slash, for example /v1/traces", c.TracesPath)
	}
	return nil
}

// Factory makes receivers of type otlp.
func Factory() pipeline.Factory {
	return pipeline.Receiver("otlp", defaults, newReceiver).
		Doc("Accepts spans in the OpenTelemetry protocol, over gRPC and over HTTP in protobuf and JSON.")
}

type receiver struct {
	server.Listeners
	set  pipeline.Settings
	next pipeline.Consumer
	lim  otlpdata.Limits
}

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	r := &receiver{Listeners: server.Listeners{}, set: set, next: next, lim: c.Limits()}
	r.lim.Depth = c.MaxDepth
	if cfg, on := c.Protocols.GRPC.Get(); on {
		s, err := newGRPCServer(r, cfg)
		if err != nil {
			return nil, err
		}
		r.Listeners["grpc"] = s
	}
	if cfg, on := c.Protocols.HTTP.Get(); on {
		s, err := newHTTPServer(r, cfg)
		if err != nil {
			return nil, err
		}
		r.Listeners["http"] = s
	}
	return r, nil
}

// consume hands b on and makes the answer. refused counts what is not even handed on.
func (r *receiver) consume(ctx context.Context, b *otlpdata.Batch, refused func(reason string)) (ptraceotlp.ExportResponse, error) {
	walk, err := r.reserve("bytes of memory to walk the request", int64(b.WalkMemory()))
	if err != nil {
		refused(server.ReasonOf(err))
		return ptraceotlp.ExportResponse{}, err
	}
	defer walk.Release()
	return outcome(r.next.Consume(ctx, b))
}

// reserve takes what work on a request needs of the budget. What can never fit is too large, not to be sent again.
func (r *receiver) reserve(what string, size int64) (*pipeline.Reservation, error) {
	budget := r.set.Budget
	if limit := budget.Limit(); limit > 0 && size > limit {
		return nil, &otlpdata.LimitError{Limit: what, Max: int(limit), TooLarge: true}
	}
	return budget.Reserve(size)
}

func (r *receiver) meta(ctx context.Context, transport string) otlpdata.Meta {
	return otlpdata.Meta{Tenant: server.Tenant(ctx), Format: "otlp", Transport: transport, Received: r.set.Env.Now()}
}
