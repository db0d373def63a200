// Package processview collects the information about a running process for operators: its state,
// its sampling strategies, and what its stages do with a trace. The `admin` extension serves it as
// JSON, and the query service shows it, together with the information from the `admin` extensions
// of other processes.
package processview

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// Process is the part of [pipeline.Process] that this package needs.
type Process interface {
	Status() status.Report
	Details(ctx context.Context) status.Details
	Components() []pipeline.Running
}

// Strategies are the sampling strategies of a process.
type Strategies struct {
	// Providers is empty if the process has no extension that provides strategies.
	Providers []sampling.Overview `json:"providers"`
	// Problems are the providers that failed, and why.
	Problems []string `json:"problems,omitempty"`
}

// Sampling returns the strategies of a process for a tenant.
func Sampling(ctx context.Context, p Process, tenant string) Strategies {
	out := Strategies{Providers: []sampling.Overview{}}
	for _, c := range p.Components() {
		l, ok := c.Component.(sampling.Lister)
		if !ok {
			continue
		}
		o, err := l.List(ctx, tenant, sampling.MaxListed)
		if err != nil {
			out.Problems = append(out.Problems, fmt.Sprintf("%s: %v", c.ID, err))
			continue
		}
		o.Component = c.ID.String()
		out.Providers = append(out.Providers, *o)
	}
	return out
}

// Question is about a trace that is missing. Each field may be empty.
type Question struct {
	Tenant    string
	Service   string // that starts the trace
	Operation string // root operation
	Trace     sampling.TraceID
}

// Explanation is what a process does with such a trace.
type Explanation struct {
	// Strategies are the strategies of the service, one for each provider.
	Strategies []Strategy `json:"strategies"`
	// Stages are the places at which the trace may be dropped on purpose: clients first, then the
	// processors of each pipeline in order.
	Stages   []sampling.Stage `json:"stages"`
	Problems []string         `json:"problems,omitempty"`
}

// Strategy is the strategy of a service, with its provider.
type Strategy struct {
	Component string `json:"component"`
	sampling.Explanation
}

// Explain answers a question as far as this process can.
func Explain(ctx context.Context, p Process, q Question) Explanation {
	out := Explanation{Strategies: []Strategy{}, Stages: []sampling.Stage{}}
	components := p.Components()
	if q.Service != "" {
		out.addClients(ctx, components, q)
	}
	out.addProcessors(p.Status().Pipelines, components, q)
	return out
}

func (out *Explanation) addClients(ctx context.Context, components []pipeline.Running, q Question) {
	for _, c := range components {
		e, ok := c.Component.(sampling.Explainer)
		if !ok {
			continue
		}
		x, err := e.Explain(ctx, q.Tenant, q.Service, q.Operation)
		if err != nil {
			out.Problems = append(out.Problems, fmt.Sprintf("%s: %v", c.ID, err))
			continue
		}
		x.Strategy = nil // the sampler says what applies to the operation
		out.Strategies = append(out.Strategies, Strategy{c.ID.String(), *x})
		if x.Sampler.Type != "" {
			s := sampling.ClientStage(x.Sampler, q.Trace)
			s.Component = c.ID.String()
			if s.Verdict == sampling.Drops && len(x.Clients) == 0 {
				s.Verdict = sampling.Depends // nothing says that clients of the service use the strategy
			}
			out.Stages = append(out.Stages, s)
		}
	}
}

// addProcessors adds the processors in the order in which spans pass through them. A processor of
// several pipelines is added once.
func (out *Explanation) addProcessors(pipelines []status.Pipeline, components []pipeline.Running, q Question) {
	for _, p := range pipelines {
		for _, member := range p.Components {
			i := slices.IndexFunc(components, func(c pipeline.Running) bool {
				return c.Kind == pipeline.KindProcessor && member.Kind == c.Kind.String() && c.ID.String() == member.Component &&
					slices.Contains(c.Pipelines, p.Pipeline)
			})
			if i < 0 {
				continue
			}
			if at := out.stage(member.Component); at >= 0 {
				out.Stages[at].Pipelines = append(out.Stages[at].Pipelines, p.Pipeline)
				continue
			}
			e, ok := components[i].Component.(sampling.TraceExplainer)
			if !ok {
				continue
			}
			if s, drops := e.ExplainTrace(q.Trace); drops {
				s.Component, s.Pipelines = member.Component, []string{p.Pipeline}
				out.Stages = append(out.Stages, s)
			}
		}
	}
}

// stage returns the index of the stage of a processor, or -1.
func (out *Explanation) stage(component string) int {
	return slices.IndexFunc(out.Stages, func(s sampling.Stage) bool { return s.Kind == "processor" && s.Component == component })
}
