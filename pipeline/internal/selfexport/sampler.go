package selfexport

import (
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tracing-backend/tracing/pipeline"
)

// sampler returns the configured sampler.
func (c *Config) sampler() sdktrace.Sampler {
	s, on := c.Sampler.Get()
	if !on {
		return sdktrace.ParentBased(sdktrace.AlwaysSample())
	}
	if p, on := s.ParentBased.Get(); on {
		return p.sampler()
	}
	return s.SamplerKinds.sampler()
}

func (s *SamplerKinds) sampler() sdktrace.Sampler {
	if r, on := s.TraceIDRatioBased.Get(); on {
		return sdktrace.TraceIDRatioBased(r.Ratio)
	}
	if isOn(&s.AlwaysOff) {
		return sdktrace.NeverSample()
	}
	return sdktrace.AlwaysSample()
}

func (p *ParentBased) sampler() sdktrace.Sampler {
	root, _ := p.Root.Get() // without the block: every trace
	var options []sdktrace.ParentBasedSamplerOption
	for _, of := range []struct {
		block  pipeline.Optional[FlatSampler]
		option func(sdktrace.Sampler) sdktrace.ParentBasedSamplerOption
	}{
		{p.RemoteParentSampled, sdktrace.WithRemoteParentSampled},
		{p.RemoteParentNotSampled, sdktrace.WithRemoteParentNotSampled},
		{p.LocalParentSampled, sdktrace.WithLocalParentSampled},
		{p.LocalParentNotSampled, sdktrace.WithLocalParentNotSampled},
	} {
		if s, on := of.block.Get(); on {
			options = append(options, of.option(s.sampler()))
		}
	}
	return sdktrace.ParentBased(root.sampler(), options...)
}
