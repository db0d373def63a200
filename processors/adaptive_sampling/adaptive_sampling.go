// Package adaptivesampling implements the `adaptive_sampling` processor. It reports root spans to
// the `sampling` extension, which calculates sampling probabilities from them, and passes on all
// spans unchanged.
package adaptivesampling

import (
	"context"
	"sync"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Config configures the processor.
type Config struct {
	Sampling pipeline.Ref[sampling.Observer] `yaml:"sampling" ref:"an extension that samples adaptively" doc:"Extension that receives root spans: a sampling extension with an adaptive block."`
}

// Validate checks that the extension is set.
func (c *Config) Validate() error {
	if !c.Sampling.IsSet() {
		return pipeline.BadKey("sampling", "must name the extension with adaptive sampling, for example sampling: sampling")
	}
	return nil
}

// Factory returns the factory of processors of type adaptive_sampling.
func Factory() pipeline.Factory {
	return pipeline.Processor("adaptive_sampling", func() Config { return Config{} }, newProcessor).
		Doc("Reports root spans to the sampling extension, which calculates the sampling probabilities of clients from them.")
}

// Processor reports root spans to an observer. It is safe for concurrent use.
type Processor struct {
	next     pipeline.Consumer
	observer sampling.Observer
	visitors sync.Pool // of *visitor
}

func newProcessor(_ pipeline.Settings, c Config, next pipeline.Consumer) (*Processor, error) {
	return New(c.Sampling.Get(), next), nil
}

// New returns a processor that reports root spans to observer and passes on all spans to next.
func New(observer sampling.Observer, next pipeline.Consumer) *Processor {
	return &Processor{next: next, observer: observer, visitors: sync.Pool{
		New: func() any { return &visitor{roots: make([]sampling.Root, 0, maxRoots)} },
	}}
}

// Consume reports the root spans of a batch and passes it on. It reports them even if a later
// component refuses the batch, so a resent batch is counted twice. As a result, clients sample less
// while a store is overloaded; otherwise they would sample more and more.
func (p *Processor) Consume(ctx context.Context, b *otlpdata.Batch) error {
	v := p.visitors.Get().(*visitor)
	v.tenant, v.observer = b.Meta().Tenant, p.observer
	if err := b.Walk(v); err != nil {
		return pipeline.Permanent(err)
	}
	v.flush()
	v.service, v.tenant, v.observer = "", "", nil
	p.visitors.Put(v)
	return p.next.Consume(ctx, b)
}

// maxRoots is the maximum number of roots per call of the observer.
const maxRoots = 256

// visitor collects the root spans of a batch. Their strings refer to the memory of the batch.
type visitor struct {
	tenant, service string
	roots           []sampling.Root
	observer        sampling.Observer
}

// Resource stores the service name, or "" if there is none.
func (v *visitor) Resource(r *otlpdata.Resource) error {
	v.service = ""
	if name, ok := otlpdata.Get(r.Attributes, "service.name"); ok {
		v.service = name.Str()
	}
	return nil
}

// Scope does nothing.
func (v *visitor) Scope(*otlpdata.Scope) error { return nil }

// Span collects a root span with information about its sampler.
func (v *visitor) Span(s *otlpdata.Span) error {
	if !s.ParentID.IsZero() || v.service == "" || s.Name == "" {
		return nil
	}
	sampler, param, ok := samplerOf(s)
	if !ok {
		return nil
	}
	v.roots = append(v.roots, sampling.Root{Service: v.service, Operation: s.Name, Sampler: sampler, Param: param})
	if len(v.roots) == maxRoots {
		v.flush()
	}
	return nil
}

// flush reports the collected roots.
func (v *visitor) flush() {
	if len(v.roots) > 0 {
		v.observer.Observe(v.tenant, v.roots)
	}
	clear(v.roots) // releases the memory of the batch
	v.roots = v.roots[:0]
}
