// Package adaptivesampling is the processor "adaptive_sampling": it tells adaptive sampling, in the extension "sampling", of the traces that
// begin, and passes on all spans as they are.
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
	Sampling pipeline.Ref[sampling.Observer] `yaml:"sampling" ref:"an extension that samples adaptively" doc:"The extension sampling, with a block adaptive."`
}

// Validate reports values that cannot work.
func (c *Config) Validate() error {
	if !c.Sampling.IsSet() {
		return pipeline.BadKey("sampling", "must name the extension that wants to know, for example sampling: sampling")
	}
	return nil
}

// Factory makes processors of type adaptive_sampling.
func Factory() pipeline.Factory {
	return pipeline.Processor("adaptive_sampling", func() Config { return Config{} }, newProcessor).
		Doc("Tells the extension sampling which traces begin, so that it can find out with which probability clients should sample.")
}

// Processor is the processor.
type Processor struct {
	next     pipeline.Consumer
	observer sampling.Observer
	scratch  sync.Pool // of *visitor
}

func newProcessor(_ pipeline.Settings, c Config, next pipeline.Consumer) (*Processor, error) {
	return New(c.Sampling.Get(), next), nil
}

// New returns a processor that tells observer of root spans, and passes all spans on to next.
func New(observer sampling.Observer, next pipeline.Consumer) *Processor {
	return &Processor{next: next, observer: observer, scratch: sync.Pool{
		New: func() any { return &visitor{roots: make([]sampling.Root, 0, atOnce)} },
	}}
}

// Consume notes the root spans, and passes on the batch. What is refused behind it was noted all the same: a client that sends it again is
// counted twice, and a store that cannot keep up makes clients sample less. Were it not counted, they would sample more and more.
func (p *Processor) Consume(ctx context.Context, b *otlpdata.Batch) error {
	segments, err := b.Segments()
	if err != nil {
		return pipeline.Permanent(err)
	}
	v := p.scratch.Get().(*visitor)
	v.tenant, v.observer = b.Meta().Tenant, p.observer
	for _, s := range segments {
		if err := otlpdata.Walk(s, v); err != nil {
			return pipeline.Permanent(err)
		}
	}
	v.flush()
	v.service, v.tenant, v.observer = "", "", nil
	p.scratch.Put(v)
	return p.next.Consume(ctx, b)
}

// atOnce is how many roots are handed over at once.
const atOnce = 256

// visitor collects the roots of a batch. Their strings are those of the batch.
type visitor struct {
	tenant, service string
	roots           []sampling.Root
	observer        sampling.Observer
}

// Resource notes the service; one without a name is none.
func (v *visitor) Resource(r *otlpdata.Resource) error {
	v.service = ""
	if name, ok := otlpdata.Get(r.Attributes, "service.name"); ok {
		v.service = name.Str()
	}
	return nil
}

// Scope does nothing.
func (v *visitor) Scope(*otlpdata.Scope) error { return nil }

// Span notes a root span that says how it was sampled.
func (v *visitor) Span(s *otlpdata.Span) error {
	if !s.ParentID.IsZero() || v.service == "" || s.Name == "" {
		return nil
	}
	sampler, param, ok := samplerOf(s)
	if !ok {
		return nil
	}
	v.roots = append(v.roots, sampling.Root{Service: v.service, Operation: s.Name, Sampler: sampler, Param: param})
	if len(v.roots) == atOnce {
		v.flush()
	}
	return nil
}

func (v *visitor) flush() {
	if len(v.roots) > 0 {
		v.observer.Observe(v.tenant, v.roots)
	}
	clear(v.roots) // their strings would keep the batch in memory
	v.roots = v.roots[:0]
}
