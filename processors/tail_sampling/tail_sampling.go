// Package tailsampling provides the `tail_sampling` processor of the OpenTelemetry Collector, which
// holds the spans of each trace until policies decide whether the trace is kept or dropped.
//
// The package makes the component report what it does with its spans, so that they are counted
// exactly. The component calls hooks after its decisions, and queries its decision caches about a
// trace before it looks at the trace's spans.
package tailsampling

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor/cache"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor/pkg/samplingpolicy"
	"go.opentelemetry.io/collector/component"

	"github.com/tracing-backend/tracing/internal/collectorkeys"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
)

// Factory returns the factory of processors of type tail_sampling.
func Factory() pipeline.Factory {
	return otelcol.HoldingProcessor(tailsamplingprocessor.NewFactory(), otelcol.Holding{
		Longest: longest, Flushes: true, Discards: discards, Observe: observed,
	}, otelcol.CheckedByStart(), otelcol.Explained(explain), otelcol.Keys(collectorkeys.TailSampling()),
		otelcol.Summary("Holds the spans of each trace until policies decide whether the trace is kept or dropped."))
}

// longest returns the time until the decision about a trace. Late spans do not wait.
func longest(c component.Config) time.Duration {
	return c.(*tailsamplingprocessor.Config).DecisionWait
}

// discards reports whether a stop drops the traces that are waiting for a decision.
func discards(c component.Config) bool {
	return c.(*tailsamplingprocessor.Config).DropPendingTracesOnShutdown
}

// observed returns a copy of a configuration with which the component reports to events.
func observed(c component.Config, events otelcol.Events) (component.Config, error) {
	out := *c.(*tailsamplingprocessor.Config)
	o := &observer{events: events, maxSize: out.MaximumTraceSizeBytes, dropped: map[otelcol.TraceID]bool{}}
	sampled, err := newDecisions(o, out.DecisionCache.SampledCacheSize, 0)
	if err != nil {
		return nil, err
	}
	// The component must know which traces a policy of type drop has dropped, otherwise it ignores
	// late spans of these traces without a report.
	nonSampled, err := newDecisions(o, out.DecisionCache.NonSampledCacheSize, int(out.NumTraces))
	if err != nil {
		return nil, err
	}
	out.Options = append(out.Options[:len(out.Options):len(out.Options)],
		tailsamplingprocessor.WithSampledDecisionCache(&sampledDecisions{sampled}),
		tailsamplingprocessor.WithNonSampledDecisionCache(&nonSampledDecisions{nonSampled}),
		tailsamplingprocessor.WithSampledHooks(o.sampled), tailsamplingprocessor.WithNonSampledHooks(o.notSampled))
	return &out, nil
}

// observer translates the component's calls into events.
type observer struct {
	events  otelcol.Events
	maxSize uint64

	mu      sync.Mutex
	dropped map[otelcol.TraceID]bool // by a policy of type drop, until the decision is put into a cache
}

// sampled is called before the spans of a trace are passed on. Other spans of the trace that the
// component had taken were evicted earlier (num_traces).
func (o *observer) sampled(_ context.Context, id otelcol.TraceID, td *tailsamplingprocessor.TraceData) {
	o.events.Dropped(id, pipeline.DroppedByEvicted, td.SpanCount)
}

// notSampled is called when the component drops the held spans of a trace, and for each part that
// arrives later.
func (o *observer) notSampled(_ context.Context, id otelcol.TraceID, td *tailsamplingprocessor.TraceData) {
	o.events.Dropped(id, pipeline.DroppedByEvicted, td.SpanCount)
	reason := pipeline.DroppedByPolicy
	if o.maxSize > 0 && td.SizeBytes > o.maxSize {
		reason = pipeline.DroppedBySize
	}
	o.events.Dropped(id, reason, 0)
	if td.FinalDecision == samplingpolicy.Dropped {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.dropped[id] = true
	}
}

// takeDropped reports whether a policy of type drop has just dropped a trace.
func (o *observer) takeDropped(id otelcol.TraceID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	dropped := o.dropped[id]
	delete(o.dropped, id)
	return dropped
}

// decisions is a decision cache. The component calls Get for each part that it takes, and once
// after each Put.
type decisions struct {
	observer *observer
	cache    cache.Cache
	all      bool // the configuration wants all decisions to be cached, not only some

	mu  sync.Mutex
	put map[otelcol.TraceID]bool // put since the latest Get
}

func newDecisions(o *observer, configured, otherwise int) (*decisions, error) {
	d := &decisions{observer: o, cache: cache.NewNopDecisionCache(), all: configured > 0, put: map[otelcol.TraceID]bool{}}
	size := configured
	if configured <= 0 {
		size = otherwise
	}
	if size <= 0 {
		return d, nil
	}
	var err error
	if d.cache, err = cache.NewLRUDecisionCache(size); err != nil {
		return nil, fmt.Errorf("decision cache of %d traces: %w", size, err)
	}
	return d, nil
}

// Put implements [cache.Cache].
func (d *decisions) Put(id otelcol.TraceID, metadata cache.DecisionMetadata) {
	d.mu.Lock()
	d.put[id] = true
	d.mu.Unlock()
	if d.observer.takeDropped(id) || d.all {
		d.cache.Put(id, metadata)
	}
}

// afterPut reports whether a Get is the one that follows a Put.
func (d *decisions) afterPut(id otelcol.TraceID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	put := d.put[id]
	delete(d.put, id)
	return put
}

// sampledDecisions is the cache that the component queries first when it takes spans.
type sampledDecisions struct{ *decisions }

// Get implements [cache.Cache].
func (d *sampledDecisions) Get(id otelcol.TraceID) (cache.DecisionMetadata, bool) {
	if !d.afterPut(id) {
		d.observer.events.Taken(id)
	}
	return d.cache.Get(id)
}

// nonSampledDecisions is the cache that the component queries next. If the trace is in it, the
// component drops the taken spans.
type nonSampledDecisions struct{ *decisions }

// Get implements [cache.Cache].
func (d *nonSampledDecisions) Get(id otelcol.TraceID) (cache.DecisionMetadata, bool) {
	metadata, found := d.cache.Get(id)
	if !d.afterPut(id) && found {
		d.observer.events.Dropped(id, pipeline.DroppedByPolicy, 0)
	}
	return metadata, found
}
