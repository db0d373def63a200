package pipelinetest

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

type consume func(ctx context.Context, b *otlpdata.Batch) error

// step is a processor or an exporter that calls a function.
type step struct {
	consume consume
	stop    func(ctx context.Context) error
}

func (s *step) Consume(ctx context.Context, b *otlpdata.Batch) error { return s.consume(ctx, b) }

func (s *step) Stop(ctx context.Context) error {
	if s.stop == nil {
		return nil
	}
	return s.stop(ctx)
}

var _ pipeline.Stopper = (*step)(nil)

type stepConfig struct {
	Level int `yaml:"level" doc:"Level."`
}

func stepDefaults() stepConfig { return stepConfig{Level: 1} }

// processor returns a subject for a processor.
func processor(make func(set pipeline.Settings, next pipeline.Consumer) *step) *subject {
	f := pipeline.Processor("step", stepDefaults, func(set pipeline.Settings, _ stepConfig, next pipeline.Consumer) (*step, error) {
		return make(set, next), nil
	})
	return processorSubject(f.Doc("Does something."), ProcessorOptions{Config: "level: 2"})
}

// through returns a subject for a processor that calls f for each batch.
func through(f func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error) *subject {
	return processor(func(_ pipeline.Settings, next pipeline.Consumer) *step {
		return &step{consume: func(ctx context.Context, b *otlpdata.Batch) error { return f(ctx, b, next) }}
	})
}

// mapsErrors returns a subject for a processor that returns f of the result of the next component.
func mapsErrors(f func(err error) error) *subject {
	return through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		return f(next.Consume(ctx, b))
	})
}

// onBuild returns a subject for a processor that calls f when it is built.
func onBuild(f func(set pipeline.Settings)) *subject {
	return processor(func(set pipeline.Settings, next pipeline.Consumer) *step {
		f(set)
		return &step{consume: next.Consume}
	})
}

func TestCorrectProcessorPasses(t *testing.T) {
	run(t, mapsErrors(func(err error) error { return err }))
}

func TestProcessorThatLosesSpans(t *testing.T) {
	const check = "every span arrives once"
	var n atomic.Int64
	expect(t, check, through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		if n.Add(1)%3 == 0 {
			return nil
		}
		return next.Consume(ctx, b)
	}), "did not arrive")
	expect(t, check, through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		return errors.Join(next.Consume(ctx, b), next.Consume(ctx, b))
	}), "arrived 2 times")
	expect(t, check, through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		td, err := b.Traces()
		if err != nil {
			return err
		}
		return next.Consume(ctx, otlpdata.FromTraces(td, otlpdata.Meta{}))
	}), "tenant: sent")
}

// TestProcessorThatAnswersEarly tests a processor that acknowledges a batch before it passes it on.
func TestProcessorThatAnswersEarly(t *testing.T) {
	var held atomic.Pointer[otlpdata.Batch]
	expect(t, "every span arrives once", through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		if before := held.Swap(b); before != nil {
			return next.Consume(ctx, before)
		}
		return nil
	}), "did not arrive")
}

func TestProcessorThatChangesErrors(t *testing.T) {
	const check = "outcomes are passed on"
	expect(t, check, mapsErrors(func(error) error { return nil }), "acknowledged")
	expect(t, check, mapsErrors(func(err error) error {
		if err == nil {
			return nil
		}
		return errors.New(err.Error())
	}), "but the response is temporary")
	expect(t, check, mapsErrors(pipeline.Permanent), "but the response is permanent")
	expect(t, check, mapsErrors(func(err error) error { return pipeline.Overloaded(err, time.Second) }), "after 1s")
	expect(t, check, mapsErrors(func(err error) error {
		return errors.Join(err, errors.New("refused after the spans have arrived"))
	}), "would be resent")
}

func TestProcessorThatWritesToBatches(t *testing.T) {
	const check = "batches are not modified"
	expect(t, check, through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		err := next.Consume(ctx, b)
		if td, terr := b.Traces(); terr == nil {
			td.ResourceSpans().At(0).Resource().Attributes().PutStr("seen", "yes")
		}
		return err
	}), "passed to the component: the objects")
	expect(t, check, through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		err := next.Consume(ctx, b)
		if chunks, serr := b.Chunks(); serr == nil {
			for c := range chunks {
				clear(c)
			}
		}
		return err
	}), "passed to the component: the encoded")
}

// TestProcessorThatReusesABuffer tests a processor that reuses the memory of a batch that it passed
// on.
func TestProcessorThatReusesABuffer(t *testing.T) {
	var mu sync.Mutex
	var buf []byte
	expect(t, "batches are not modified", through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		encoded, err := b.Encoded()
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		buf = append(buf[:0], encoded...)
		copied, err := otlpdata.FromOTLP(buf, b.Meta(), otlpdata.Limits{})
		if err != nil {
			return err
		}
		return next.Consume(ctx, copied)
	}), "passed on by the component")
}

func TestProcessorThatIgnoresItsContext(t *testing.T) {
	expect(t, "the context ends a call", through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		return next.Consume(context.WithoutCancel(ctx), b)
	}), "did not return")
}

func TestProcessorThatIsNotSafeConcurrently(t *testing.T) {
	expect(t, "concurrent callers", mixing(), "arrive")
}

func TestProcessorThatPanics(t *testing.T) {
	expect(t, "a batch without spans", through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		_ = b.Services()[0]
		return next.Consume(ctx, b)
	}), "internal error")
}

func TestComponentWithSideEffectsWhenBuilt(t *testing.T) {
	const check = "building opens nothing"
	var opened []interface{ Close() error }
	keep := func(c interface{ Close() error }, err error) {
		if err != nil {
			t.Error(err)
			return
		}
		opened = append(opened, c)
	}
	expect(t, check, onBuild(func(set pipeline.Settings) {
		keep(set.Env.Listen(t.Context(), "tcp", "localhost:0"))
	}), "listens on tcp localhost:0")
	expect(t, check, onBuild(func(pipeline.Settings) { keep(net.Listen("tcp", "localhost:0")) }), "building opened socket:")
	expect(t, check, onBuild(func(pipeline.Settings) { keep(os.Create(filepath.Join(t.TempDir(), "log"))) }), "building opened /")
	expect(t, check, onBuild(func(set pipeline.Settings) {
		if err := os.MkdirAll(set.Dir, 0o700); err != nil {
			t.Error(err)
		}
	}), "wrote to the folder")
	end := make(chan struct{})
	expect(t, check, onBuild(func(pipeline.Settings) { go func() { <-end }() }), "started a goroutine")
	close(end)
	for _, c := range opened {
		c.Close()
	}
}

func TestComponentThatLeaksAGoroutine(t *testing.T) {
	end := make(chan struct{})
	expect(t, "no goroutines after Stop", through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		go func() { <-end }()
		return next.Consume(ctx, b)
	}), "found unexpected goroutines")
	close(end)
}

func TestComponentThatDoesNotStop(t *testing.T) {
	end := make(chan struct{})
	sub := processor(func(_ pipeline.Settings, next pipeline.Consumer) *step {
		return &step{next.Consume, func(context.Context) error {
			<-end
			return nil
		}}
	})
	expect(t, "stops at the deadline", sub, "Stop did not return")
	close(end)
	sub = processor(func(_ pipeline.Settings, next pipeline.Consumer) *step {
		return &step{next.Consume, func(context.Context) error { return errors.New("cannot") }}
	})
	expect(t, "starts, stops and restarts", sub, "cannot")
}

func TestUndocumentedConfig(t *testing.T) {
	type inner struct {
		Size              int
		Wait              int `yaml:"wait" doc:"no sentence"`
		pipeline.Delivery `yaml:",inline"`
	}
	type config struct {
		Block pipeline.Optional[inner] `yaml:"block" doc:"A block."`
	}
	f := pipeline.Processor("step", func() config { return config{} },
		func(_ pipeline.Settings, _ config, next pipeline.Consumer) (*step, error) {
			return &step{consume: next.Consume}, nil
		})
	const check = "the configuration is documented"
	expect(t, check, processorSubject(f, ProcessorOptions{}), "give the factory a Doc")
	expect(t, check, processorSubject(f, ProcessorOptions{}), "field Size has no yaml tag")
	expect(t, check, processorSubject(f, ProcessorOptions{}), "key wait needs a doc tag")
	expect(t, check, processorSubject(f, ProcessorOptions{}), `field Delivery: tag ",inline" is not a key`)
	expect(t, check, processorSubject(f, ProcessorOptions{Config: "blok: {}"}), `unknown key "blok"`)
}
