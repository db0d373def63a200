package otelcol

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// instance is a Collector component for one tenant, and the consumer behind it.
type instance struct {
	p       *holdingProcessor
	tenant  string
	inner   processor.Traces
	mutates bool
	ledger  ledger
	users   atomic.Int64   // calls of the component that have not returned
	calls   sync.WaitGroup // the same
	used    time.Time      // latest call; guarded by p.mu
}

var (
	_ consumer.Traces = (*instance)(nil)
	_ Events          = (*instance)(nil)
)

func (i *instance) unuse() {
	i.users.Add(-1)
	i.calls.Done()
}

// Capabilities says that the spans belong to the instance.
func (*instance) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// ConsumeTraces takes spans that the component passes on. It never waits.
func (i *instance) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	o, open := i.ledger.out(td, i.p.set.Env.Now())
	if !open || o.spans == 0 {
		return nil // these spans were counted when the ledger was closed
	}
	if o.made > 0 {
		i.p.set.Made(int(o.made))
		i.p.held.Add(o.made)
	}
	meta := otlpdata.Meta{Received: i.p.set.Env.Now()}
	if o.meta != nil {
		meta = *o.meta
	}
	meta.Tenant = i.tenant
	if !i.p.outlet.put(release{batch: otlpdata.FromTraces(td, meta), bytes: o.bytes}) {
		i.p.drop(o.spans, o.bytes, pipeline.DroppedByStop)
	}
	return nil
}

// Taken implements [Events].
func (i *instance) Taken(id TraceID) { i.ledger.takeTrace(id, i.p.set.Env.Now()) }

// Dropped implements [Events].
func (i *instance) Dropped(id TraceID, reason string, except int64) {
	spans, bytes := i.ledger.drop(id, except)
	if spans > 0 {
		i.p.drop(spans, bytes, reason)
	}
}

// stopWaitPart is the part of the remaining stop time during which stop waits until the component
// has passed on all spans.
const stopWaitPart = 2

// emptyPoll is the interval at which stop checks whether the component still holds spans.
const emptyPoll = 20 * time.Millisecond

// stop stops the component. It returns when the component has stopped or ctx ends.
func (i *instance) stop(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		i.calls.Wait()
		if !i.p.flush {
			i.waitEmpty(ctx)
		}
		done <- shutdown(ctx, i.inner, i.p.set.Logger)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("component is still stopping: %w", context.Cause(ctx))
	}
}

// waitEmpty waits until the component has passed on all held spans, but not longer than that should
// take, and not longer than a part of the time until ctx ends.
func (i *instance) waitEmpty(ctx context.Context) {
	wait := i.p.settle
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/stopWaitPart)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(emptyPoll)
	defer tick.Stop()
	for !i.ledger.empty() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
