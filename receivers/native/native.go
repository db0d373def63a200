// Package native receives spans in the native model: protobuf over gRPC (PostSpans), and Thrift in the binary protocol over HTTP. Both are
// translated to OTLP bytes in one pass. On the same ports it tells clients which traces to sample.
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

// The endpoints that clients of a collector expect.
const (
	defaultGRPCEndpoint = "localhost:14250"
	defaultHTTPEndpoint = "localhost:14268"
)

// format is what metrics call the spans of this receiver, over both protocols.
const format = "tracing"

type config struct {
	Protocols protocols                       `yaml:"protocols" doc:"What to listen for; at least one."`
	Sampling  pipeline.Ref[sampling.Provider] `yaml:"sampling" ref:"a sampling provider" doc:"Extension that decides what clients sample; without one they are not told."`
	server.RequestLimits
}

type protocols struct {
	GRPC pipeline.Optional[server.GRPCConfig] `yaml:"grpc" doc:"Protobuf over gRPC: what agents send."`
	HTTP pipeline.Optional[server.HTTPConfig] `yaml:"http" doc:"Thrift over HTTP: what client libraries send past the agent."`
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

// Validate reports mistakes between keys.
func (c *config) Validate() error {
	_, grpc := c.Protocols.GRPC.Get()
	_, http := c.Protocols.HTTP.Get()
	if !grpc && !http {
		return pipeline.BadKey("protocols", "needs grpc, http or both; an empty block takes the defaults: protocols: {grpc: }")
	}
	return nil
}

// Factory makes receivers of type native.
func Factory() pipeline.Factory {
	return pipeline.Receiver("native", defaults, newReceiver).
		Doc("Receives spans in the native formats: protobuf over gRPC, as agents send them, and Thrift over HTTP.")
}

type receiver struct {
	server.Listeners // by protocol, of which at least one
	set              pipeline.Settings
	next             pipeline.Consumer
	sampling         sampling.Provider // nil: clients are not told what to sample
	lim              otlpdata.Limits
	translations     *server.Translator
}

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	r := &receiver{Listeners: server.Listeners{}, set: set, next: next, translations: server.NewTranslator(set.Budget),
		lim: c.Limits()}
	if c.Sampling.IsSet() {
		r.sampling = c.Sampling.Get()
	}
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

// undecodable is the error of bytes that are no batch of spans.
type undecodable struct{ err error }

func (e *undecodable) Error() string { return e.err.Error() }
func (e *undecodable) Unwrap() error { return e.err }

// translate makes a batch of a request's body; the caller releases it. The error is permanent unless the budget is used up for the moment or
// ctx has ended, and wraps an *undecodable or a limit.
func (r *receiver) translate(ctx context.Context, body []byte, w wireFormat) (server.Translated, error) {
	return r.translations.Translate(ctx, body, w.memory(body, native.UsualGrowth), func(m *server.TranslationMemory) (*otlpdata.Batch, error) {
		return r.decode(ctx, body, w, m)
	})
}

// decode translates a body for which m has the usual memory. What becomes larger than that is translated once more, with more of it.
func (r *receiver) decode(ctx context.Context, body []byte, w wireFormat, m *server.TranslationMemory) (*otlpdata.Batch, error) {
	otlp, err := w.translate(body, native.UsualGrowth*len(body)+native.Base)
	if errors.Is(err, native.ErrOutput) {
		if err := m.Resize(w.memory(body, native.Growth)); err != nil {
			return nil, err
		}
		otlp, err = w.translate(body, 0)
	}
	if err != nil {
		return nil, pipeline.Permanent(&undecodable{err})
	}
	meta := otlpdata.Meta{Tenant: server.Tenant(ctx), Format: format, Transport: w.transport, Received: r.set.Env.Now()}
	b, err := otlpdata.FromOTLP(otlp, meta, r.lim)
	if err != nil {
		return nil, pipeline.Permanent(err)
	}
	return b, nil
}

// consume hands the spans on. A batch of which a part was refused for good is a success to the client: the protocols cannot tell it, and
// an error would make it send the rest again. The refused spans are counted where they were refused.
func (r *receiver) consume(ctx context.Context, b server.Translated) error {
	defer b.Release()
	err := r.next.Consume(ctx, b.Batch)
	var partial *pipeline.Partial
	if errors.As(err, &partial) {
		return nil
	}
	return err
}
