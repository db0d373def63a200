package pipelinetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// deliveryConfig is that of an exporter whose retries are the framework's.
type deliveryConfig struct {
	pipeline.Delivery
	Destination string `yaml:"destination" doc:"Where to send."`
}

// sender makes a subject of an exporter whose next hop is one function call away.
func sender(f func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error) *subject {
	var hop pipeline.Consumer
	factory := pipeline.Exporter("sender", func() deliveryConfig { return deliveryConfig{Delivery: pipeline.DefaultDelivery()} },
		func(pipeline.Settings, deliveryConfig) (*step, error) {
			return &step{consume: func(ctx context.Context, b *otlpdata.Batch) error { return f(ctx, b, hop) }}, nil
		})
	return exporterSubject(factory.Doc("Sends."), ExporterOptions{Config: func(_ testing.TB, next pipeline.Consumer) string {
		hop = next
		return "destination: next hop"
	}})
}

// shelf is a store.
type shelf struct {
	mu      sync.Mutex
	batches []*otlpdata.Batch
}

func (s *shelf) Consume(ctx context.Context, b *otlpdata.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, b)
	return nil
}

func (s *shelf) all() []*otlpdata.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*otlpdata.Batch(nil), s.batches...)
}

// oblivious is a store that loses what it was given by a caller who has left.
type oblivious struct{ shelf }

func (o *oblivious) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if ctx.Err() != nil {
		return nil
	}
	return o.shelf.Consume(ctx, b)
}

// store makes a subject of a store.
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

func TestRightExportersPass(t *testing.T) {
	t.Run("sender", func(t *testing.T) {
		run(t, sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error { return hop.Consume(ctx, b) }))
	})
	t.Run("store", func(t *testing.T) { run(t, store(func() *shelf { return &shelf{} })) })
	t.Run("nowhere", func(t *testing.T) {
		f := pipeline.Exporter("nowhere", stepDefaults, func(pipeline.Settings, stepConfig) (*step, error) {
			return &step{consume: func(context.Context, *otlpdata.Batch) error { return nil }}, nil
		})
		run(t, exporterSubject(f.Doc("Forgets."), ExporterOptions{Forgets: true, Config: fixed("")}))
	})
}

func TestWrongExporters(t *testing.T) {
	expect(t, "outcomes are told", sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		hop.Consume(ctx, b) //nolint:errcheck // that is what is wrong
		return nil
	}), "told yes")
	expect(t, "outcomes are told", sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		if err := hop.Consume(ctx, b); err != nil {
			return errors.New("sending failed")
		}
		return nil
	}), "is permanent, and was told as to be tried again")
	expect(t, "the context ends a call", sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		return hop.Consume(context.Background(), b)
	}), "did not return")
	expect(t, "many callers at once", sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		return errors.Join(hop.Consume(ctx, b), hop.Consume(ctx, b)) // sends all again, also what arrived
	}), "would be sent again")
	expect(t, "the context ends a call", store(func() *oblivious { return &oblivious{} }), "did not arrive")
}

// The ledger itself: a component that passes on what cannot be read is not taken for one that passes on nothing.
func TestBatchThatCannotBeRead(t *testing.T) {
	expect(t, "every span arrives once", through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		buf := []byte{0x0a, 0x02, 0x0a, 0x00}
		broken, err := otlpdata.FromOTLP(buf, b.Meta(), otlpdata.Limits{})
		if err != nil {
			return err
		}
		buf[1] = 0xff
		return next.Consume(ctx, broken)
	}), "cannot be read")
}
