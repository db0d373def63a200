package pipelinetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// deliveryConfig is the configuration of an exporter that embeds pipeline.Delivery.
type deliveryConfig struct {
	pipeline.Delivery
	Destination string `yaml:"destination" doc:"Destination."`
}

// sender returns a subject for an exporter that calls f to send to its next hop.
func sender(f func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error) *subject {
	return senderStep(func(hop pipeline.Consumer) *step {
		return &step{consume: func(ctx context.Context, b *otlpdata.Batch) error { return f(ctx, b, hop) }}
	})
}

// senderStep is like sender for an exporter that make builds.
func senderStep(make func(hop pipeline.Consumer) *step) *subject {
	var hop pipeline.Consumer
	factory := pipeline.Exporter("sender", func() deliveryConfig { return deliveryConfig{Delivery: pipeline.DefaultDelivery()} },
		func(pipeline.Settings, deliveryConfig) (*step, error) { return make(hop), nil })
	return exporterSubject(factory.Doc("Sends."), ExporterOptions{Config: func(_ testing.TB, next pipeline.Consumer) string {
		hop = next
		return "destination: next hop"
	}})
}

// memoryStore is a store.
type memoryStore struct {
	mu      sync.Mutex
	batches []*otlpdata.Batch
}

func (s *memoryStore) Consume(ctx context.Context, b *otlpdata.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, b)
	return nil
}

func (s *memoryStore) all() []*otlpdata.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*otlpdata.Batch(nil), s.batches...)
}

// lossyStore is a store that loses the spans of callers whose context has ended.
type lossyStore struct{ memoryStore }

func (o *lossyStore) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if ctx.Err() != nil {
		return nil
	}
	return o.memoryStore.Consume(ctx, b)
}

// store returns a subject for a store.
func store[S interface {
	pipeline.Consumer
	all() []*otlpdata.Batch
}](empty func() S) *subject {
	f := pipeline.Exporter("store", stepDefaults, func(pipeline.Settings, stepConfig) (S, error) { return empty(), nil })
	return exporterSubject(f.Doc("Stores."), ExporterOptions{
		Config: func(testing.TB, pipeline.Consumer) string { return "" },
		Read:   func(exporter any) ([]*otlpdata.Batch, error) { return exporter.(S).all(), nil },
	})
}

func TestCorrectExportersPass(t *testing.T) {
	t.Run("sender", func(t *testing.T) {
		run(t, sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error { return hop.Consume(ctx, b) }))
	})
	t.Run("store", func(t *testing.T) { run(t, store(func() *memoryStore { return &memoryStore{} })) })
	t.Run("discard", func(t *testing.T) {
		f := pipeline.Exporter("discard", stepDefaults, func(pipeline.Settings, stepConfig) (*step, error) {
			return &step{consume: func(context.Context, *otlpdata.Batch) error { return nil }}, nil
		})
		run(t, exporterSubject(f.Doc("Discards spans."), ExporterOptions{Discards: true, Config: fixed("")}))
	})
}

func TestFaultyExporters(t *testing.T) {
	expect(t, "outcomes are passed on", sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		hop.Consume(ctx, b) //nolint:errcheck // this is the fault
		return nil
	}), "acknowledged")
	expect(t, "outcomes are passed on", sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		if err := hop.Consume(ctx, b); err != nil {
			return errors.New("sending failed")
		}
		return nil
	}), "is permanent, but the response is temporary")
	expect(t, "the context ends a call", sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		return hop.Consume(context.Background(), b)
	}), "did not return")
	expect(t, "concurrent callers", sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		return errors.Join(hop.Consume(ctx, b), hop.Consume(ctx, b)) // resends spans that have arrived
	}), "would be resent")
	expect(t, "the context ends a call", store(func() *lossyStore { return &lossyStore{} }), "did not arrive")
}

// TestUndecodableBatch checks that a batch that cannot be decoded is reported as such, not as
// missing.
func TestUndecodableBatch(t *testing.T) {
	expect(t, "every span arrives once", through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		buf := []byte{0x0a, 0x02, 0x0a, 0x00}
		broken, err := otlpdata.FromOTLP(buf, b.Meta(), otlpdata.Limits{})
		if err != nil {
			return err
		}
		buf[1] = 0xff
		return next.Consume(ctx, broken)
	}), "cannot decode")
}
