package config

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
)

// Pipeline is one pipeline.
type Pipeline struct {
	ID         pipeline.ID
	Receivers  []*Component // receivers, and connectors that feed the pipeline
	Processors []*Component
	Exporters  []*Component // exporters, and connectors that the pipeline feeds
}

// Types of pipelines, by what they pass on.
const (
	typeTraces = "traces"
	typeLogs   = "logs"
)

// Logs reports whether the pipeline passes on log records instead of spans.
func (p Pipeline) Logs() bool { return p.ID.Type == typeLogs }

// Members returns all components in the order that spans pass them.
func (p Pipeline) Members() []*Component {
	return slices.Concat(p.Receivers, p.Processors, p.Exporters)
}

// Holder returns the first processor that acknowledges spans before it passes them on, or nil.
func (p Pipeline) Holder() *Component {
	for _, c := range p.Processors {
		if c.Holds() {
			return c
		}
	}
	return nil
}

// FedBy returns the pipelines that list a receiver or connector as a receiver.
func (c *Config) FedBy(source *Component) []Pipeline {
	var fed []Pipeline
	for _, p := range c.Pipelines {
		if slices.Contains(p.Receivers, source) {
			fed = append(fed, p)
		}
	}
	return fed
}

// feeding returns the pipelines that list a connector as an exporter.
func (c *Config) feeding(connector *Component) []Pipeline {
	var feeding []Pipeline
	for _, p := range c.Pipelines {
		if slices.Contains(p.Exporters, connector) {
			feeding = append(feeding, p)
		}
	}
	return feeding
}

// Signals reports whether pipelines of spans and of log records have a component.
func (c *Config) Signals(m *Component) (spans, logs bool) {
	for _, p := range c.Pipelines {
		if slices.Contains(p.Members(), m) {
			spans, logs = spans || !p.Logs(), logs || p.Logs()
		}
	}
	return spans, logs
}

// LogsOnly reports whether a component is in pipelines of log records but not in any of spans, and
// no used component refers to it.
func (c *Config) LogsOnly(m *Component) bool {
	if spans, logs := c.Signals(m); spans || !logs {
		return false
	}
	for user := range c.Used() {
		if slices.ContainsFunc(user.References, func(r Reference) bool { return r.Target == m }) {
			return false
		}
	}
	return true
}

// leadsTo reports whether spans from a receiver or connector may reach a connector.
func (c *Config) leadsTo(source, connector *Component) bool {
	seen := map[*Component]bool{}
	var visit func(from *Component) bool
	visit = func(from *Component) bool {
		if from == connector || seen[from] {
			return from == connector
		}
		seen[from] = true
		for _, p := range c.FedBy(from) {
			if slices.ContainsFunc(p.Exporters, visit) {
				return true
			}
		}
		return false
	}
	return visit(source)
}

// ExportersBehind returns the exporters that spans of a pipeline may reach, directly or through
// connectors.
func (c *Config) ExportersBehind(p Pipeline) []*Component {
	seen := map[*Component]bool{}
	var out []*Component
	var visit func(p Pipeline)
	visit = func(p Pipeline) {
		for _, e := range p.Exporters {
			if seen[e] {
				continue
			}
			seen[e] = true
			if e.Key.Kind == pipeline.KindExporter {
				out = append(out, e)
			}
			for _, fed := range c.FedBy(e) {
				visit(fed)
			}
		}
	}
	visit(p)
	return out
}
