package otelcol

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Holding says how a Collector processor holds spans.
type Holding struct {
	// Longest returns how long the processor holds spans of a trace at most after it was given any.
	// Spans that have not come out a few seconds later count as dropped.
	Longest func(component.Config) time.Duration
	// Flushes says that the processor passes on held spans in Shutdown. For other processors, Stop
	// waits before Shutdown until they have passed on all spans.
	Flushes bool
	// Discards reports whether Shutdown of a processor with Flushes drops held spans instead. It
	// may be nil.
	Discards func(component.Config) bool
	// Observe returns a copy of the configuration with which the processor reports its actions to
	// events. It is nil if the processor cannot report them.
	Observe func(c component.Config, events Events) (component.Config, error)
}

// Events receives reports of some processors about the spans of a trace. It is safe for concurrent
// use, but calls for the same trace must not be concurrent.
type Events interface {
	// Taken says that the processor starts on the next spans that it was given: the spans of one
	// resource in one request.
	Taken(id TraceID)
	// Dropped says that the processor has dropped, for a reason, the spans that it has taken but
	// not passed on, except up to a number of the latest ones.
	Dropped(id TraceID, reason string, except int64)
}

// settleMargin is the time after which spans that have not come out count as dropped, in addition
// to [Holding.Longest].
const settleMargin = 10 * time.Second

// HoldingProcessor returns the factory of a Collector processor that acknowledges spans and passes
// them on later: a [pipeline.Holder]. It has an instance for each tenant, so that it never joins
// spans of two tenants.
func HoldingProcessor(f processor.Factory, h Holding, options ...Option) pipeline.Factory {
	o := optionsOf(options)
	check := func(c component.Config) error { return checkProcessor(f, c, o.checkedByStart) }
	return o.applied(f, pipeline.Processor(f.Type().String(), defaults(f, check, o.keys),
		func(set pipeline.Settings, c Config, next pipeline.Consumer) (*holdingProcessor, error) {
			p, err := newHoldingProcessor(f, h, set, c, next)
			if err == nil {
				p.explainer = explainer{o.explain, c.value}
			}
			return p, err
		}))
}

// holdingProcessor runs a Collector processor that holds spans. The memory of the spans is reserved
// from when they are accepted until they are settled.
type holdingProcessor struct {
	explainer
	create   func(*instance) (processor.Traces, error)
	set      pipeline.Settings
	settle   time.Duration // after the last event of a trace
	flush    bool
	discards bool // drops held spans when it stops, although flush is set
	memory   *pipeline.Reservation
	held     atomic.Int64 // spans
	outlet   *outlet
	cancel   context.CancelFunc // ends sweeps
	swept    chan struct{}

	mu        sync.Mutex
	instances map[string]*instance // by tenant
	stopping  bool

	dropping sync.Mutex // held while dropped spans are counted and freed
	stopped  bool       // Stop has ended; guarded by dropping
}

var (
	_ pipeline.Holder  = (*holdingProcessor)(nil)
	_ pipeline.Starter = (*holdingProcessor)(nil)
	_ pipeline.Stopper = (*holdingProcessor)(nil)

	_ pipeline.Replaceable = (*holdingProcessor)(nil)
	_ pipeline.Replaceable = (*itemsProcessor)(nil)
)

func newHoldingProcessor(f processor.Factory, h Holding, set pipeline.Settings, c Config,
	next pipeline.Consumer) (*holdingProcessor, error) {
	id, tel, err := identity(f, set)
	if err != nil {
		return nil, err
	}
	memory, err := set.HeldMemory.Reserve(0)
	if err != nil {
		return nil, err
	}
	p := &holdingProcessor{set: set, flush: h.Flushes, settle: h.Longest(c.value) + settleMargin, memory: memory,
		instances: map[string]*instance{}}
	p.discards = h.Discards != nil && h.Discards(c.value)
	p.outlet = newOutlet(next, p.settled)
	p.create = func(i *instance) (processor.Traces, error) {
		value := c.value
		if h.Observe != nil {
			var err error
			if value, err = h.Observe(value, i); err != nil {
				return nil, err
			}
			i.ledger.tracked = true
		}
		return f.CreateTraces(context.Background(), processor.Settings{ID: id, TelemetrySettings: tel, BuildInfo: buildInfo(set)}, value, i)
	}
	_, err = p.addInstance("")
	return p, err
}

// addInstance adds the instance of a tenant. The caller holds p.mu, or no other goroutine uses p.
func (p *holdingProcessor) addInstance(tenant string) (*instance, error) {
	i := &instance{p: p, tenant: tenant, used: p.set.Env.Now(), ledger: ledger{traces: map[TraceID]*heldTrace{}}}
	inner, err := p.create(i)
	if err != nil {
		return nil, err
	}
	i.inner, i.mutates = inner, inner.Capabilities().MutatesData
	p.instances[tenant] = i
	return i, nil
}

// Start starts the instance of the default tenant; others follow when they are needed.
func (p *holdingProcessor) Start(ctx context.Context) error {
	if err := p.instances[""].inner.Start(ctx, host{p.set.Report}); err != nil {
		return err
	}
	p.outlet.start()
	ctx, p.cancel = context.WithCancel(context.Background())
	p.swept = make(chan struct{})
	go p.sweep(ctx)
	return nil
}

// HandOver does nothing: the processor runs at the same time as its replacement and passes on held
// spans.
func (p *holdingProcessor) HandOver(context.Context) {}

// Held returns the number of spans that were accepted and are not settled.
func (p *holdingProcessor) Held() int64 { return p.held.Load() }

// Consume passes the spans of b to the instance of the tenant.
func (p *holdingProcessor) Consume(ctx context.Context, b *otlpdata.Batch) error {
	i, err := p.use(b.Meta().Tenant)
	if err != nil {
		return err
	}
	td, err := objects(b, i.mutates)
	if err != nil {
		i.unuse()
		return pipeline.Permanent(err)
	}
	meta := b.Meta()
	parts, bytes := partsOf(td, int64(meta.Metadata.Size()))
	if err := p.memory.Grow(bytes); err != nil {
		i.unuse()
		return err
	}
	p.held.Add(int64(b.Len()))
	i.ledger.addParts(parts, &meta, p.set.Env.Now())
	return classified(p.give(ctx, i, td, parts))
}

// give gives spans to a component and returns its error. If ctx ends first, give returns nil: the
// component has the spans and takes them later.
func (p *holdingProcessor) give(ctx context.Context, i *instance, td ptrace.Traces, parts []part) error {
	spans := int64(td.SpanCount())
	done := make(chan error, 1)
	var answered atomic.Bool // the component has returned, or ctx has ended
	go func() {              // some components wait and ignore ctx
		defer i.unuse()
		err := safely(func() error { return i.inner.ConsumeTraces(context.WithoutCancel(ctx), td) })
		late := answered.Swap(true)
		if err != nil {
			p.refused(i, parts, spans, late, err)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if answered.Swap(true) {
		return <-done
	}
	return nil
}

// refused settles spans that a component has refused with err. If late is set, they were already
// accepted, so the component has lost them.
func (p *holdingProcessor) refused(i *instance, parts []part, spans int64, late bool, err error) {
	left, bytes := i.ledger.remove(parts)
	if late {
		p.set.Logger.Error("component refused spans after they were accepted", zap.Int64("spans", left), zap.Error(err))
		p.drop(left, bytes, pipeline.DroppedByEvicted)
		return
	}
	p.free(left, bytes)
	if passed := spans - left; passed > 0 { // the client gets the error for these as well
		p.set.Made(int(passed))
	}
}

// use returns the instance of a tenant, which is not removed before unuse.
func (p *holdingProcessor) use(tenant string) (*instance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return nil, pipeline.ErrStopping
	}
	i := p.instances[tenant]
	if i == nil {
		if len(p.instances) > p.set.HeldTenants {
			return nil, pipeline.Overloaded(fmt.Errorf("spans of %d other tenants are held: service.limits.held_tenants is %d",
				p.set.HeldTenants, p.set.HeldTenants), 0)
		}
		var err error
		if i, err = p.addInstance(tenant); err == nil {
			err = i.inner.Start(context.Background(), host{p.set.Report})
		}
		if err != nil {
			delete(p.instances, tenant)
			return nil, fmt.Errorf("starting for tenant %q: %w", tenant, err)
		}
	}
	i.users.Add(1)
	i.calls.Add(1)
	i.used = p.set.Env.Now()
	return i, nil
}

// free records that spans are no longer held.
func (p *holdingProcessor) free(spans, bytes int64) {
	p.memory.Shrink(bytes)
	p.held.Add(-spans)
}

// settled is called with spans that were passed on or dropped behind the processor.
func (p *holdingProcessor) settled(spans, bytes int64) { p.free(spans, bytes) }

// drop counts spans that the component has dropped. After Stop, which may not have waited for the
// component, it leaves them to the framework, which counts the spans that are still held.
func (p *holdingProcessor) drop(spans, bytes int64, reason string) {
	p.dropping.Lock()
	defer p.dropping.Unlock()
	if p.stopped {
		return
	}
	if spans > 0 {
		p.set.Dropped(int(spans), reason)
	}
	p.free(spans, bytes)
}

// sweep settles spans that are overdue, and removes instances that are idle.
func (p *holdingProcessor) sweep(ctx context.Context) {
	defer close(p.swept)
	tick := time.NewTicker(max(time.Second, p.settle/16))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := p.set.Env.Now()
		for _, i := range p.all() {
			spans, bytes := i.ledger.overdue(now.Add(-p.settle))
			p.drop(spans, bytes, pipeline.DroppedByEvicted)
			p.removeIdle(i, now)
		}
	}
}

func (p *holdingProcessor) all() []*instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*instance, 0, len(p.instances))
	for _, i := range p.instances {
		all = append(all, i)
	}
	return all
}

// removeIdle removes the instance of a tenant that has sent nothing for some time.
func (p *holdingProcessor) removeIdle(i *instance, now time.Time) {
	p.mu.Lock()
	idle := i.tenant != "" && i.users.Load() == 0 && now.Sub(i.used) > p.settle && i.ledger.empty()
	if idle {
		delete(p.instances, i.tenant)
	}
	p.mu.Unlock()
	if !idle {
		return
	}
	if err := i.inner.Shutdown(context.Background()); err != nil {
		p.set.Report(fmt.Errorf("stopping the instance of tenant %q: %w", i.tenant, err))
	}
}

// errHeldLeft is the error of a Stop with spans that could not be passed on.
var errHeldLeft = errors.New("held spans were dropped because there was no time to pass them on")

// Stop passes on held spans. Spans that the component keeps, or that are left when ctx ends, are
// dropped.
func (p *holdingProcessor) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	var errs []error
	if p.cancel != nil {
		p.cancel()
		<-p.swept
	}
	var left int64
	for _, i := range p.all() {
		var err error
		if p.cancel != nil {
			err = i.stop(ctx)
			errs = append(errs, err)
		}
		spans, bytes := i.ledger.close()
		if p.flush && !p.discards && err == nil { // it has passed on all that it held
			p.drop(spans, bytes, pipeline.DroppedByEvicted)
			continue
		}
		p.drop(spans, bytes, pipeline.DroppedByStop)
		left += spans
	}
	unsent, bytes := p.outlet.stop(ctx)
	p.drop(unsent, bytes, pipeline.DroppedByStop)
	if left+unsent > 0 {
		errs = append(errs, fmt.Errorf("%w: %d spans", errHeldLeft, left+unsent))
	}
	p.dropping.Lock()
	p.stopped = true
	p.dropping.Unlock()
	if sending := p.held.Load(); sending > 0 { // the framework counts them as dropped
		errs = append(errs, fmt.Errorf("%w: next component is still sending %d spans after its context was canceled", errHeldLeft, sending))
	}
	p.memory.Release()
	return errors.Join(errs...)
}
