package host_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// reader is a receiver whose clients do not wait.
type reader struct{ next pipeline.Consumer }

func (*reader) Start(context.Context) error { return nil }

func (*reader) MaxWait() time.Duration { return time.Minute }

// The batches of a receiver without waiting clients have its own limit.
func TestMaxWaitOfReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hosttest.NewWorld()
		var r *reader
		factories := append(w.Factories(),
			pipeline.Receiver("reader", func() hosttest.StepConfig { return hosttest.StepConfig{} },
				func(_ pipeline.Settings, _ hosttest.StepConfig, next pipeline.Consumer) (*reader, error) {
					r = &reader{next}
					return r, nil
				}),
			pipeline.Exporter("slow", func() hosttest.StepConfig { return hosttest.StepConfig{} },
				func(pipeline.Settings, hosttest.StepConfig) (hosttest.SendFunc, error) {
					return func(ctx context.Context, b *otlpdata.Batch) error {
						select {
						case <-ctx.Done():
							return ctx.Err()
						case <-time.After(time.Duration(b.Len()) * 20 * time.Second):
							return nil
						}
					}, nil
				}))
		w.StartWith(t, factories, "receivers: {source: , reader: }\nexporters: {slow: }\n"+
			"service: {pipelines: {traces: {receivers: [source, reader], exporters: [slow]}}}\n")
		if err := w.Source["source"].Consume(t.Context(), hosttest.OneSpan("a")); err == nil {
			t.Error("max_wait does not limit the batch of a client that waits")
		}
		if err := r.next.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
			t.Error(err)
		}
		if err := r.next.Consume(t.Context(), hosttest.Spans(9, "shop")); !pipeline.IsTemporary(err) {
			t.Errorf("batch above the limit of the receiver: %v", err)
		}
	})
}
