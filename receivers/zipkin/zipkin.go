// Package zipkin receives spans from Zipkin's clients over HTTP: version 2 of the format in JSON and protobuf, version 1 in JSON and
// Thrift. They are translated to OTLP bytes in one pass.
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

// defaultEndpoint is where clients expect a Zipkin server.
const defaultEndpoint = "localhost:9411"

type config struct {
	server.HTTPConfig
	server.RequestLimits
	ParseStringTags bool `yaml:"parse_string_tags" doc:"Make numbers and booleans of tags that look like them; Zipkin knows only text."`
}

func defaults() config {
	return config{HTTPConfig: server.DefaultHTTPConfig(defaultEndpoint), RequestLimits: server.DefaultRequestLimits()}
}

// Factory makes receivers of type zipkin.
func Factory() pipeline.Factory {
	return pipeline.Receiver("zipkin", defaults, newReceiver).
		Doc("Receives spans from Zipkin's clients over HTTP, in JSON, protobuf and Thrift.")
}

type receiver struct {
	*server.HTTP
	set             pipeline.Settings
	next            pipeline.Consumer
	lim             otlpdata.Limits
	parseStringTags bool
	translations    *server.Translator
}

var (
	_ pipeline.Starter   = (*receiver)(nil)
	_ pipeline.Stopper   = (*receiver)(nil)
	_ pipeline.Addressed = (*receiver)(nil)
)

// listenerName is what the only listener is called.
const listenerName = "http"

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	r := &receiver{
		set:             set,
		next:            next,
		lim:             c.Limits(),
		parseStringTags: c.ParseStringTags,
		translations:    server.NewTranslator(set.Budget),
	}
	var err error
	if r.HTTP, err = server.NewHTTP(set, listenerName, c.HTTPConfig, r); err != nil {
		return nil, err
	}
	r.OnDenied(server.DenyWithStatus)
	return r, nil
}

// Addr returns the address of the listener, whose name is `http`.
func (r *receiver) Addr(name string) string {
	if name != listenerName {
		return ""
	}
	return r.HTTP.Addr()
}

// translate makes a batch of a request's body; the caller releases it. The error is permanent unless the budget is used up for the moment or
// ctx has ended.
func (r *receiver) translate(ctx context.Context, f *format, body []byte, debug bool) (server.Translated, error) {
	opt := zipkin.Options{Debug: debug, ParseStringTags: r.parseStringTags, Now: r.set.Env.Now(), Limits: r.lim}
	return r.translations.Translate(ctx, body, f.memory(body, r.lim.Items), func(*server.TranslationMemory) (*otlpdata.Batch, error) {
		return decode(ctx, f, body, opt)
	})
}

// translated limits nothing: the translation has kept to the limits, and what it adds (resources, attributes of endpoints) is not the
// client's fault.
var translated = otlpdata.Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Items: math.MaxInt}

func decode(ctx context.Context, f *format, body []byte, opt zipkin.Options) (*otlpdata.Batch, error) {
	otlp, err := f.translate(body, opt)
	if err != nil {
		return nil, pipeline.Permanent(err)
	}
	meta := otlpdata.Meta{Tenant: server.Tenant(ctx), Format: "zipkin", Transport: "http", Received: opt.Now}
	b, err := otlpdata.FromOTLP(otlp, meta, translated)
	if err != nil {
		return nil, pipeline.Permanent(err)
	}
	return b, nil
}

// consume hands the spans on. A batch of which a part was refused for good is a success to the client: the protocol cannot tell it, and an
// error would make clients send the rest again. The refused spans are counted where they were refused.
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
