package connectors_test

import (
	"slices"
	"testing"
)

// A pipeline that a connector feeds is a branch of its own: its sampler does not apply to the
// exporters of the pipeline in front of the connector, and it chooses the traces that it would
// choose without a connector.
func TestForwardIsABranch(t *testing.T) {
	stores := []string{"all", "sampled", "alone"}
	p := run(t, stores, `
processors: {probabilistic_sampler: {sampling_percentage: 10}}
connectors: {forward: }
service:
  extensions: [EXTENSIONS]
  pipelines:
    traces/all: {receivers: [otlp], exporters: [memory/all, forward]}
    traces/sampled: {receivers: [forward], processors: [probabilistic_sampler], exporters: [memory/sampled]}
    traces/alone: {receivers: [otlp], processors: [probabilistic_sampler], exporters: [memory/alone]}
`)
	p.send(traces(0, 200, "production"))
	if n := len(p.stored("all")); n != 200 {
		t.Errorf("the store without a sampler has %d of 200 traces", n)
	}
	sampled, alone := p.stored("sampled"), p.stored("alone")
	if !slices.Equal(sampled, alone) || len(sampled) < 5 || len(sampled) > 60 {
		t.Errorf("the branch has %d traces, a sampler alone keeps %d", len(sampled), len(alone))
	}
}

// Two pipelines feed a connector, which feeds two pipelines; one of them feeds another connector.
func TestChainOfConnectors(t *testing.T) {
	stores := []string{"near", "far", "last"}
	p := run(t, stores, `
processors:
  resource/a: {attributes: [{key: way, value: a, action: insert}]}
  filter: {traces: {span: ['resource.attributes["deployment.environment"] == "dev"']}}
connectors: {forward/in: , forward/out: }
service:
  extensions: [EXTENSIONS]
  pipelines:
    traces/a: {receivers: [otlp], processors: [resource/a], exporters: [forward/in]}
    traces/near: {receivers: [forward/in], exporters: [memory/near]}
    traces/far: {receivers: [forward/in], processors: [filter], exporters: [memory/far, forward/out]}
    traces/last: {receivers: [forward/out], exporters: [memory/last]}
`)
	p.send(traces(0, 30, "production"))
	p.send(traces(30, 20, "dev"))
	if got := p.counts(stores...); got != "near:50 far:30 last:30" {
		t.Error(got)
	}
}
