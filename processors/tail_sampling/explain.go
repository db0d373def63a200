package tailsampling

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"go.opentelemetry.io/collector/component"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// explain lists the policies. A policy that samples the trace because of its id keeps it unless a
// policy of type drop matches; all other policies depend on the spans.
func explain(c component.Config, id sampling.TraceID) sampling.Stage {
	config := c.(*tailsamplingprocessor.Config)
	s := sampling.Stage{Kind: "processor", Method: sampling.MethodPolicies, Verdict: sampling.Drops, Key: "policies",
		Wait: config.DecisionWait.Nanoseconds()}
	mayDrop := false
	for i := range config.PolicyCfgs {
		p := &config.PolicyCfgs[i]
		r := ruleOf(p, id)
		s.Rules = append(s.Rules, r)
		switch {
		case p.Type == tailsamplingprocessor.Drop:
			mayDrop = true
		case r.Verdict == sampling.Keeps:
			s.Verdict = sampling.Keeps
		case r.Verdict == sampling.Depends && s.Verdict == sampling.Drops:
			s.Verdict = sampling.Depends
		}
	}
	if mayDrop && s.Verdict == sampling.Keeps {
		s.Verdict = sampling.Depends
	}
	return s
}

// ruleOf describes a policy.
func ruleOf(p *tailsamplingprocessor.PolicyCfg, id sampling.TraceID) sampling.Rule {
	r := sampling.Rule{Name: p.Name, Type: string(p.Type), Verdict: sampling.Depends}
	switch p.Type {
	case tailsamplingprocessor.AlwaysSample:
		r.Verdict, r.Text = sampling.Keeps, "every trace"
	case tailsamplingprocessor.Probabilistic:
		var s sampling.Stage
		s.Decide(p.ProbabilisticCfg.SamplingPercentage/100, needs(p.ProbabilisticCfg.HashSalt, id), id)
		r.Verdict, r.Probability, r.Needs = s.Verdict, s.Probability, s.Needs
		r.Text = fmt.Sprintf("%g %% of traces", p.ProbabilisticCfg.SamplingPercentage)
	case tailsamplingprocessor.Latency:
		r.Text = fmt.Sprintf("traces of at least %d ms", p.LatencyCfg.ThresholdMs)
	case tailsamplingprocessor.StatusCode:
		r.Text = "a span with status " + strings.Join(p.StatusCodeCfg.StatusCodes, " or ")
	case tailsamplingprocessor.StringAttribute:
		r.Text = fmt.Sprintf("%s is %s", p.StringAttributeCfg.Key, strings.Join(p.StringAttributeCfg.Values, " or "))
		if p.StringAttributeCfg.InvertMatch {
			r.Text = "not: " + r.Text
		}
	case tailsamplingprocessor.RateLimiting:
		r.Text = fmt.Sprintf("at most %d spans per second", p.RateLimitingCfg.SpansPerSecond)
	default:
		r.Text = settings(p)
	}
	return r
}

// settings returns the part of the configuration that belongs to the type of a policy, as JSON.
func settings(p *tailsamplingprocessor.PolicyCfg) string {
	of := map[tailsamplingprocessor.PolicyType]any{
		tailsamplingprocessor.NumericAttribute: p.NumericAttributeCfg, tailsamplingprocessor.BooleanAttribute: p.BooleanAttributeCfg,
		tailsamplingprocessor.SpanCount: p.SpanCountCfg, tailsamplingprocessor.TraceState: p.TraceStateCfg,
		tailsamplingprocessor.OTTLCondition: p.OTTLConditionCfg, tailsamplingprocessor.BytesLimiting: p.BytesLimitingCfg,
		tailsamplingprocessor.And: p.AndCfg, tailsamplingprocessor.Not: p.NotCfg, tailsamplingprocessor.Drop: p.DropCfg,
		tailsamplingprocessor.Composite: p.CompositeCfg,
	}[p.Type]
	text, err := json.Marshal(of)
	if of == nil || err != nil {
		return string(p.Type)
	}
	return string(text)
}

// defaultSalt is the component's default of hash_salt.
const defaultSalt = "default-hash-seed"

// needs returns the lowest probability at which the component samples a trace, by comparing a hash
// of the id with the probability.
func needs(salt string, id sampling.TraceID) float64 {
	h := fnv.New64a()
	h.Write([]byte(cmp.Or(salt, defaultSalt))) //nolint:errcheck // never fails
	h.Write(id[:])                             //nolint:errcheck // never fails
	return float64(h.Sum64()) / math.MaxUint64
}
