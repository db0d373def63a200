// Package strategies translates sampling strategies between package sampling and Jaeger's protobuf
// model.
package strategies

import (
	"errors"
	"fmt"
	"math"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// ToProto returns the message for a strategy.
func ToProto(s *sampling.Strategy) *api_v2.SamplingStrategyResponse {
	out := &api_v2.SamplingStrategyResponse{StrategyType: api_v2.SamplingStrategyType(s.Type)}
	if s.Probability != nil {
		out.ProbabilisticSampling = &api_v2.ProbabilisticSamplingStrategy{SamplingRate: *s.Probability}
	}
	if s.Limit != nil {
		out.RateLimitingSampling = &api_v2.RateLimitingSamplingStrategy{MaxTracesPerSecond: *s.Limit}
	}
	if o := s.Operations; o != nil {
		out.OperationSampling = &api_v2.PerOperationSamplingStrategies{DefaultSamplingProbability: o.Default,
			DefaultLowerBoundTracesPerSecond: o.LowerBound, DefaultUpperBoundTracesPerSecond: o.UpperBound}
		for _, e := range o.PerOperation {
			out.OperationSampling.PerOperationStrategies = append(out.OperationSampling.PerOperationStrategies,
				&api_v2.OperationSamplingStrategy{
					Operation: e.Name, ProbabilisticSampling: &api_v2.ProbabilisticSamplingStrategy{SamplingRate: e.Probability}})
		}
	}
	return out
}

// FromProto returns the strategy in a message. It returns an error for strategies that no client
// can use: an unknown type, an operation without a strategy, NaN or infinite numbers. Probabilities
// outside of [0, 1] are accepted, because agents pass on the strategies of the collector.
func FromProto(m *api_v2.SamplingStrategyResponse) (*sampling.Strategy, error) {
	s := &sampling.Strategy{Type: sampling.Type(m.StrategyType)}
	if m.StrategyType != api_v2.SamplingStrategyType_PROBABILISTIC && m.StrategyType != api_v2.SamplingStrategyType_RATE_LIMITING {
		return nil, fmt.Errorf("sampling strategy has unknown type %d", m.StrategyType)
	}
	if p := m.ProbabilisticSampling; p != nil {
		s.Probability = &p.SamplingRate
	}
	if l := m.RateLimitingSampling; l != nil {
		s.Limit = &l.MaxTracesPerSecond
	}
	if err := finite(m.GetProbabilisticSampling().GetSamplingRate()); err != nil {
		return nil, err
	}
	if m.OperationSampling != nil {
		var err error
		if s.Operations, err = operations(m.OperationSampling); err != nil {
			return nil, err
		}
	}
	if s.Probability == nil && s.Limit == nil && s.Operations == nil {
		return nil, errors.New("sampling strategy is empty")
	}
	return s, nil
}

func operations(m *api_v2.PerOperationSamplingStrategies) (*sampling.Operations, error) {
	o := &sampling.Operations{Default: m.DefaultSamplingProbability, LowerBound: m.DefaultLowerBoundTracesPerSecond,
		UpperBound: m.DefaultUpperBoundTracesPerSecond, PerOperation: make([]sampling.Operation, len(m.PerOperationStrategies))}
	if err := finite(o.Default, o.LowerBound, o.UpperBound); err != nil {
		return nil, err
	}
	for i, e := range m.PerOperationStrategies {
		if e.ProbabilisticSampling == nil {
			return nil, fmt.Errorf("sampling strategy of operation %q is empty", e.Operation)
		}
		o.PerOperation[i] = sampling.Operation{Name: e.Operation, Probability: e.ProbabilisticSampling.SamplingRate}
		if err := finite(o.PerOperation[i].Probability); err != nil {
			return nil, fmt.Errorf("operation %q: %w", e.Operation, err)
		}
	}
	return o, nil
}

func finite(numbers ...float64) error {
	for _, n := range numbers {
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return fmt.Errorf("sampling strategy contains %v; want a finite number", n)
		}
	}
	return nil
}
