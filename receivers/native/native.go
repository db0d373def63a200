// Package native receives spans over Jaeger's protocols: protobuf over gRPC (PostSpans) and Thrift
// in the binary protocol over HTTP. It translates both to OTLP bytes in one pass. On the same ports
// it serves sampling strategies to clients.
package native

import (
	"context"
	"errors"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// Default endpoints of collectors.
const (
	defaultGRPCEndpoint = "localhost:14250"
	defaultHTTPEndpoint = "localhost:14268"
)

// format is the metric label for spans of this receiver.
const format = "tracing"

type config struct {
	Protocols protocols                       `yaml:"protocols" doc:"Protocols to serve; at least one is required."`
	Sampling  pipeline.Ref[sampling.Provider] `yaml:"sampling" ref:"a sampling provider" doc:"Extension that provides sampling strategies for clients."`
	server.RequestLimits
}

type protocols struct {
	GRPC pipeline.Optional[server.GRPCConfig] `yaml:"grpc" doc:"Listener for protobuf over gRPC, which agents use."`
	HTTP pipeline.Optional[server.HTTPConfig] `yaml:"http" doc:"Listener for Thrift over HTTP, which client libraries use when they send without an agent."`
}

func defaults() config {
	return config{
		Protocols: protocols{
			GRPC: pipeline.Absent(server.DefaultGRPCConfig(defaultGRPCEndpoint)),
			HTTP: pipeline.Absent(server.DefaultHTTPConfig(defaultHTTPEndpoint)),
		},
		RequestLimits: server.DefaultRequestLimits(),
	}
}

// Validate checks that at least one protocol is configured.
func (c *config) Validate() error {
	_, grpc := c.Protocols.GRPC.Get()
	_, http := c.Protocols.HTTP.Get()
	if !grpc && !http {
		return pipeline.BadKey("protocols", "must have grpc, http or both; an empty block uses the defaults: protocols: {grpc: }")
	}
	return nil
}

// Factory returns the factory of receivers of type native.
func Factory() pipeline.Factory {
	return pipeline.Receiver("native", defaults, newReceiver).
		Doc("Receives spans in Jaeger's formats: protobuf over gRPC, as agents send them, and Thrift over HTTP.")
}

type receiver struct {
	server.Listeners             // provides Start, Stop and Addr
	grpc             *grpcServer // nil if not configured
	http             *httpServer // nil if not configured
	set              pipeline.Settings
	next             pipeline.Consumer
	sampling         sampling.Provider // nil if strategies are not served
	limits           otlpdata.Limits
	translator       *server.Translator
}

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	r := &receiver{Listeners: server.Listeners{}, set: set, next: next, translator: server.NewTranslator(set.Budget),
		limits: c.Limits()}
	if c.Sampling.IsSet() {
		r.sampling = c.Sampling.Get()
	}
	if cfg, on := c.Protocols.GRPC.Get(); on {
		s, err := newGRPCServer(r, cfg)
		if err != nil {
			return nil, err
		}
		r.grpc, r.Listeners["grpc"] = s, s.listener
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

// undecodable is the error of a body that is not a valid batch of spans.
type undecodable struct{ err error }

func (e *undecodable) Error() string { return e.err.Error() }
func (e *undecodable) Unwrap() error { return e.err }

// translate translates the body of a request. The caller must release the result. Unless the budget
// is exhausted or ctx has ended, errors are permanent and wrap either an *undecodable or a limit
// error.
func (r *receiver) translate(ctx context.Context, body []byte, w wireFormat) (server.Translated, error) {
	return r.translator.Translate(ctx, body, w.memory(body, native.TypicalGrowth), func(m *server.TranslationMemory) (*otlpdata.Batch, error) {
		return r.decode(ctx, body, w, m)
	})
}

// decode translates a body. m holds the typical memory for its size; if the output is larger,
// decode increases m and retries.
func (r *receiver) decode(ctx context.Context, body []byte, w wireFormat, m *server.TranslationMemory) (*otlpdata.Batch, error) {
	otlp, err := w.translate(body, native.TypicalGrowth*len(body)+native.BaseMemory)
	if errors.Is(err, native.ErrOutputTooLarge) {
		if err := m.Resize(w.memory(body, native.MaxGrowth)); err != nil {
			return nil, err
		}
		otlp, err = w.translate(body, 0)
	}
	if err != nil {
		return nil, pipeline.Permanent(&undecodable{err})
	}
	meta := otlpdata.Meta{Tenant: server.Tenant(ctx), Format: format, Transport: w.transport, Received: r.set.Env.Now(),
		Metadata: server.Metadata(ctx)}
	b, err := otlpdata.FromOTLP(otlp, meta, r.limits)
	if err != nil {
		return nil, pipeline.Permanent(err)
	}
	return b, nil
}

// consume passes on the spans. A partial success is a success for the client: the protocols cannot
// express it, and an error would make the client resend the accepted spans. The component that
// rejected spans has counted them.
func (r *receiver) consume(ctx context.Context, b server.Translated) error {
	defer b.Release()
	err := r.next.Consume(ctx, b.Batch)
	var partial *pipeline.Partial
	if errors.As(err, &partial) {
		return nil
	}
	return err
}
