package deployment

import (
	"math"

	"github.com/tracing-backend/tracing/internal/processview"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// change is a change to the configuration, or to a request, that would keep such a trace.
type change struct {
	Code      string  `json:"code"`
	Process   int     `json:"process"` // index
	Component string  `json:"component,omitempty"`
	Key       string  `json:"key,omitempty"`   // of the configuration
	Place     string  `json:"place,omitempty"` // file and line of a strategy
	From      float64 `json:"from,omitempty"`
	To        float64 `json:"to,omitempty"`
	// Kept is the share of such traces that would be kept, and Factor the factor by which the
	// number of spans grows; 0 means unknown.
	Kept   float64 `json:"kept,omitempty"`
	Factor float64 `json:"factor,omitempty"`
}

// Codes of changes.
const (
	changeStrategy = "strategy" // raise the probability of the service or operation in the strategies
	changeTarget   = "target"   // raise the target of adaptive sampling
	changePercent  = "percent"  // raise the percentage of a processor
	changePriority = "priority" // set the attribute sampling.priority of a span
	changePolicy   = "policy"   // add a policy that matches the trace
	changeFilter   = "filter"   // remove or change the conditions that match
	changeFlag     = "flag"     // ask for one trace: send traceparent with the flag 01
)

// changes lists changes that would keep the trace, for each stage that drops it or may drop it.
func (out *explainAnswer) changes() []change {
	all := []change{}
	if out.Verdict == "stored" {
		return all
	}
	for i, p := range out.Processes {
		if p.Data == nil {
			continue
		}
		for j := range p.Data.Stages {
			s := &p.Data.Stages[j]
			if s.Verdict != sampling.Keeps {
				all = append(all, changesOf(s, i, p.Data)...)
			}
		}
	}
	return all
}

// changesOf lists changes that would make a stage keep the trace.
func changesOf(s *sampling.Stage, process int, x *processview.Explanation) []change {
	c := change{Process: process, Component: s.Component, Key: s.Key}
	if s.Probability != nil {
		c.From = *s.Probability
		c.To = 1
		if s.Needs != nil {
			c.To = roundUp(*s.Needs)
		}
		c.Kept = c.To
		if c.From > 0 {
			c.Factor = c.To / c.From
		}
	}
	coded := func(code string) change { c.Code = code; return c }
	switch {
	case s.Kind == "client":
		return clientChanges(s, c, x)
	case s.Method == sampling.MethodPolicies:
		return []change{coded(changePolicy)}
	case s.Method == sampling.MethodConditions:
		return []change{coded(changeFilter)}
	}
	return []change{coded(changePercent), {Code: changePriority, Process: process, Component: s.Component}}
}

// clientChanges lists changes that would make clients keep the trace.
func clientChanges(s *sampling.Stage, c change, x *processview.Explanation) []change {
	c.Code = changeStrategy
	for _, strategy := range x.Strategies {
		if strategy.Component != s.Component {
			continue
		}
		c.Place = strategy.Origin.Place
		if a := strategy.Adaptive; a != nil {
			c.Code, c.Key, c.Place = changeTarget, "adaptive::target_samples_per_second", ""
			if c.From > 0 {
				c.From, c.To = a.Target, roundUp(a.Target*c.To/c.From)
			}
		}
	}
	if s.Method == sampling.MethodRate {
		c = change{Code: changeStrategy, Process: c.Process, Component: c.Component, Place: c.Place}
	}
	return []change{c, {Code: changeFlag, Process: c.Process, Component: c.Component}}
}

// roundUp rounds up to two significant digits.
func roundUp(x float64) float64 {
	if x <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	return math.Ceil(x/unit-1e-9) * unit
}
