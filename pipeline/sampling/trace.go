package sampling

import (
	"encoding/binary"
	"fmt"
)

// TraceExplainer is implemented by processors that drop spans on purpose.
type TraceExplainer interface {
	// ExplainTrace says what the processor does with the spans of a trace, as far as that depends
	// on its id and the configuration. ok is false if the processor drops no traces.
	ExplainTrace(id TraceID) (stage Stage, ok bool)
}

// TraceID is the id of a trace.
type TraceID [16]byte

// Verdict is what a [Stage] or [Rule] does with a trace.
type Verdict string

// Verdicts.
const (
	Keeps   Verdict = "keeps"
	Drops   Verdict = "drops"
	Depends Verdict = "depends" // on the spans of the trace, or on the load when it arrived
)

// Methods of stages.
const (
	MethodConsistent = "consistent" // number of the trace: the last 56 bits of its id (W3C)
	MethodHash       = "hash"       // number of the trace: a hash of its id
	MethodSDK        = "sdk"        // OpenTelemetry: half of the id; the rules describe other clients
	MethodRate       = "rate"       // traces per second
	MethodPolicies   = "policies"   // of tail sampling
	MethodConditions = "conditions" // spans that match any are dropped
)

// Stage is a place at which a trace is kept or dropped.
type Stage struct {
	Component string   `json:"component,omitempty"` // set by the caller
	Kind      string   `json:"kind"`                // `client`, `processor`
	Pipelines []string `json:"pipelines,omitempty"` // set by the caller
	Method    string   `json:"method"`
	Verdict   Verdict  `json:"verdict"`
	// Probability is the probability of the stage; nil if it has none.
	Probability *float64 `json:"probability,omitempty"`
	// Needs is the lowest probability at which the stage keeps the trace; nil without a trace id.
	Needs *float64 `json:"needs,omitempty"`
	// Key is the key of the configuration that decides.
	Key string `json:"key,omitempty"`
	// Wait is how long the stage holds spans before it decides, in nanoseconds.
	Wait  int64  `json:"wait,omitempty"`
	Rules []Rule `json:"rules,omitempty"`
}

// Rule is one of several rules of a [Stage].
type Rule struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Text        string   `json:"text"` // the rule as configured
	Verdict     Verdict  `json:"verdict"`
	Probability *float64 `json:"probability,omitempty"`
	Needs       *float64 `json:"needs,omitempty"`
}

// Decide sets Verdict from Probability and the lowest probability that keeps the trace.
func (s *Stage) Decide(probability, needs float64, id TraceID) {
	s.Probability = &probability
	s.Verdict = Depends
	switch {
	case probability >= 1:
		s.Verdict = Keeps
	case probability <= 0:
		s.Verdict = Drops
	}
	if id == (TraceID{}) {
		return
	}
	s.Needs = &needs
	if s.Verdict == Depends {
		if s.Verdict = Drops; probability >= needs {
			s.Verdict = Keeps
		}
	}
}

// NeedsConsistent returns the lowest probability of a consistent sampler that keeps a trace.
func NeedsConsistent(id TraceID) float64 {
	const all = 1 << 56
	randomness := binary.BigEndian.Uint64(id[8:]) & (all - 1)
	return 1 - float64(randomness)/all
}

// ClientStage returns the stage in which a client decides with a sampler. Clients derive the number
// of a trace in different ways; if the results disagree, the decision depends on the client.
func ClientStage(sampler Sampler, id TraceID) Stage {
	s := Stage{Kind: "client", Method: MethodSDK, Verdict: Depends}
	if sampler.Type == "ratelimiting" {
		s.Method = MethodRate
		s.Rules = []Rule{{Name: "limit", Type: sampler.Type, Verdict: Depends,
			Text: fmt.Sprintf("at most %g traces per second for each process", sampler.Param)}}
		return s
	}
	low := binary.BigEndian.Uint64(id[8:])
	const half = 1 << 63
	sdk, native := float64(low>>1)/half, float64(low&(half-1))/half
	s.Decide(sampler.Param, sdk, id)
	if id != (TraceID{}) {
		other := Stage{}
		other.Decide(sampler.Param, native, id)
		s.Rules = append(s.Rules,
			Rule{Name: "OpenTelemetry SDK", Type: "trace_id_ratio", Verdict: s.Verdict, Needs: s.Needs,
				Text: "the second half of the trace id, without its last bit"},
			Rule{Name: "Jaeger client library", Type: "trace_id_ratio", Verdict: other.Verdict, Needs: other.Needs,
				Text: "the second half of the trace id, without its first bit"})
		if other.Verdict != s.Verdict {
			s.Verdict = Depends
		}
	}
	if sampler.LowerBound > 0 {
		s.Rules = append(s.Rules, Rule{Name: "lower bound", Type: "lower_bound", Verdict: Depends,
			Text: fmt.Sprintf("at least %.3g traces per second of each operation, for each process", sampler.LowerBound)})
	}
	return s
}
