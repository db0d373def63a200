// Package zipkin receives spans from Zipkin clients over HTTP: version 2 of the format in JSON and
// protobuf, version 1 in JSON and Thrift. It translates them to OTLP bytes in one pass.
package zipkin

import (
	"context"
	"errors"
	"math"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/internal/translate/zipkin"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// defaultEndpoint has the port that Zipkin clients use by default.
const defaultEndpoint = "localhost:9411"

type config struct {
	server.HTTPConfig
	server.RequestLimits
	ParseStringTags bool `yaml:"parse_string_tags" doc:"Whether to convert tag values that look like numbers or booleans; in the Zipkin formats, all values are strings."`
}

func defaults() config {
	return config{HTTPConfig: server.DefaultHTTPConfig(defaultEndpoint), RequestLimits: server.DefaultRequestLimits()}
}

// Factory returns the factory of receivers of type zipkin.
func Factory() pipeline.Factory {
	return pipeline.Receiver("zipkin", defaults, newReceiver).
		Doc("Receives spans from Zipkin clients over HTTP, in JSON, protobuf and Thrift.")
}

type receiver struct {
	server.Listeners // provides Start, Stop and Addr
	listener         *server.HTTP
	set              pipeline.Settings
	next             pipeline.Consumer
	limits           otlpdata.Limits
	parseStringTags  bool
	translator       *server.Translator
}

// listenerName is the name of the only listener.
const listenerName = "http"

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	r := &receiver{
		set:             set,
		next:            next,
		limits:          c.Limits(),
		parseStringTags: c.ParseStringTags,
		translator:      server.NewTranslator(set.Budget),
	}
	var err error
	if r.listener, err = server.NewHTTP(set, listenerName, c.HTTPConfig, r); err != nil {
		return nil, err
	}
	r.listener.OnDenied(server.DenyWithStatus)
	r.Listeners = server.Listeners{listenerName: r.listener}
	return r, nil
}

// translate translates the body of a request. The caller must release the result. An error is
// permanent unless the budget is exhausted or ctx has ended.
func (r *receiver) translate(ctx context.Context, f *format, body []byte, debug bool) (server.Translated, error) {
	opt := zipkin.Options{Debug: debug, ParseStringTags: r.parseStringTags, Now: r.set.Env.Now(), Limits: r.limits}
	return r.translator.Translate(ctx, body, f.memory(body, r.limits.Items), func(*server.TranslationMemory) (*otlpdata.Batch, error) {
		return decode(ctx, f, body, opt)
	})
}

// noLimits is for translated spans: the translation has applied the limits, and clients are not
// responsible for its additions (resources, attributes of endpoints).
var noLimits = otlpdata.Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Items: math.MaxInt}

func decode(ctx context.Context, f *format, body []byte, opt zipkin.Options) (*otlpdata.Batch, error) {
	otlp, err := f.translate(body, opt)
	if err != nil {
		return nil, pipeline.Permanent(err)
	}
	meta := otlpdata.Meta{Tenant: server.Tenant(ctx), Format: "zipkin", Transport: "http", Received: opt.Now,
		Metadata: server.Metadata(ctx)}
	b, err := otlpdata.FromOTLP(otlp, meta, noLimits)
	if err != nil {
		return nil, pipeline.Permanent(err)
	}
	return b, nil
}

// consume passes on the spans. A partial success is a success for the client: the protocol cannot
// express it, and an error would make the client resend the accepted spans. The component that
// rejected spans has counted them.
func (r *receiver) consume(ctx context.Context, b server.Translated) error {
	defer b.Release()
	err := r.next.Consume(ctx, b.Batch)
	processed := b.Batch.Len()
	var partial *pipeline.Partial
	switch {
	case errors.As(err, &partial):
		processed -= partial.Rejected
		err = nil
	case err != nil:
		processed = 0
	}
	r.set.Logger.Debug("Zipkin span batch processed by the collector.",
		zap.Int("received-span-count", b.Batch.Len()), zap.Int("processed-span-count", processed))
	return err
}
