package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

// watched is a receiver that tells whether it is running.
type watched struct {
	*receiver
	running *atomic.Int32
}

func (w *watched) Start(ctx context.Context) error {
	err := w.receiver.Start(ctx)
	if err == nil {
		w.running.Add(1)
	}
	return err
}

func (w *watched) Stop(ctx context.Context) error {
	defer w.running.Add(-1)
	return w.receiver.Stop(ctx)
}

// A producer gets no response from the receiver: this one waits until its record is committed, or
// until the receiver has stopped.
func TestConformance(t *testing.T) {
	c := newCluster(t, 1)
	var running atomic.Int32
	factory := pipeline.Receiver("kafka", defaults, func(set pipeline.Settings, cfg config, next pipeline.Consumer) (*watched, error) {
		r, err := newReceiver(set, cfg, next)
		return &watched{r, &running}, err
	}).Doc(Factory().Summary())
	send := func(ctx context.Context, _ string, spans ptrace.Traces) error {
		value, err := ptraceotlp.NewExportRequestFromTraces(spans).MarshalProto()
		if err != nil {
			return err
		}
		// The suite looks for goroutines, also for those that serve connections.
		producer, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DisableClientMetrics())
		if err != nil {
			return err
		}
		defer producer.Close()
		r := &kgo.Record{Topic: topic, Value: value}
		if err := producer.ProduceSync(ctx, r).FirstErr(); err != nil {
			return err
		}
		for c.committed(0) <= r.Offset {
			if running.Load() == 0 {
				return errors.New("receiver has stopped")
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	}
	cfg := fmt.Sprintf(`
brokers: [%s]
topic: %s
group_id: %s
max_fetch_wait: 10ms
heartbeat_interval: 100ms
session_timeout: 6s
autocommit: {interval: 5ms}
error_backoff: {initial_interval: 1ms, max_interval: 5ms}
`, strings.Join(c.ListenAddrs(), ","), topic, group)
	pipelinetest.Receiver(t, factory, pipelinetest.ReceiverOptions{Config: cfg, Unanswered: true, Send: send})
}
