package sampling

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Type is the type of a strategy for clients that do not support operation strategies. The values
// are defined by the protocol.
type Type uint8

// Strategy types. There is no type for strategies by operation.
const (
	Probabilistic Type = iota
	RateLimiting
)

// String returns the name in the protocol.
func (t Type) String() string {
	if t == RateLimiting {
		return "RATE_LIMITING"
	}
	return "PROBABILISTIC"
}

// Strategy is a sampling strategy for a client. If Operations is set, clients ignore all other
// fields. A Strategy is immutable once it has been returned.
type Strategy struct {
	Type        Type
	Probability *float64 // share of traces, from 0 to 1; nil if absent
	Limit       *int32   // traces per second and process; nil if absent
	Operations  *Operations
}

// Operations holds strategies by root operation.
type Operations struct {
	Default      float64 // probability of operations that are not listed
	LowerBound   float64 // minimum traces per second sampled for each operation, regardless of its probability
	UpperBound   float64 // traces per second; 0 means no limit. No known client supports it
	PerOperation []Operation
}

// Operation is the strategy of one operation.
type Operation struct {
	Name        string
	Probability float64
}

// NewProbabilistic returns a strategy that samples a share of all traces.
func NewProbabilistic(probability float64) *Strategy {
	return &Strategy{Type: Probabilistic, Probability: &probability}
}

// NewRateLimiting returns a strategy that samples at most perSecond traces per second in each
// process.
func NewRateLimiting(perSecond int32) *Strategy {
	return &Strategy{Type: RateLimiting, Limit: &perSecond}
}

// Equal reports whether two strategies are the same for clients.
func (s *Strategy) Equal(o *Strategy) bool {
	return s.Type == o.Type && same(s.Probability, o.Probability) && same(s.Limit, o.Limit) && s.Operations.equal(o.Operations)
}

func (o *Operations) equal(p *Operations) bool {
	if o == nil || p == nil {
		return o == p
	}
	return o.Default == p.Default && o.LowerBound == p.LowerBound && o.UpperBound == p.UpperBound &&
		slices.Equal(o.PerOperation, p.PerOperation)
}

func same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Sampler is the sampler that a client uses for traces that start with one operation.
type Sampler struct {
	Type  string  `json:"type"`  // `probabilistic` or `ratelimiting`, as in the tag sampler.type of root spans
	Param float64 `json:"param"` // probability, or traces per second
	// LowerBound is the minimum number of traces per second that are sampled regardless of the
	// probability; their tag sampler.type is `lowerbound`.
	LowerBound float64 `json:"lowerBound,omitempty"`
	// PerOperation says that the operation has its own strategy.
	PerOperation bool `json:"ofOperation"`
}

// Sampler returns the sampler for traces that start with the operation. Like clients, it prefers
// operation strategies.
func (s *Strategy) Sampler(operation string) Sampler {
	if o := s.Operations; o != nil {
		out := Sampler{Type: "probabilistic", Param: o.Default, LowerBound: o.LowerBound}
		if i := slices.IndexFunc(o.PerOperation, func(e Operation) bool { return e.Name == operation }); i >= 0 {
			out.Param, out.PerOperation = o.PerOperation[i].Probability, true
		}
		return out
	}
	if s.Limit != nil && (s.Type == RateLimiting || s.Probability == nil) {
		return Sampler{Type: "ratelimiting", Param: float64(*s.Limit)}
	}
	return Sampler{Type: "probabilistic", Param: *cmp.Or(s.Probability, new(float64))}
}

// String returns a summary: `probabilistic 0.5`, `probabilistic 0.5; 12 operation strategies`, `7
// traces per second`.
func (s *Strategy) String() string {
	all := s.Sampler("")
	text := "probabilistic " + strconv.FormatFloat(all.Param, 'g', -1, 64)
	if all.Type == "ratelimiting" {
		text = strconv.FormatFloat(all.Param, 'f', -1, 64) + " traces per second"
	}
	if o := s.Operations; o != nil && len(o.PerOperation) > 0 {
		text += fmt.Sprintf("; %d operation strategies", len(o.PerOperation))
	}
	return text
}

// JSON forms, with members in the order that clients expect. Absent members are omitted; other
// members are written even if zero.
type (
	strategyJSON struct {
		Type          any                `json:"strategyType"`
		Probabilistic *probabilisticJSON `json:"probabilisticSampling,omitempty"`
		RateLimiting  *limitJSON         `json:"rateLimitingSampling,omitempty"`
		Operations    *operationsJSON    `json:"operationSampling,omitempty"`
	}
	probabilisticJSON struct {
		Rate float64 `json:"samplingRate"`
	}
	limitJSON struct {
		MaxPerSecond int32 `json:"maxTracesPerSecond"`
	}
	operationsJSON struct {
		Default      float64         `json:"defaultSamplingProbability"`
		LowerBound   float64         `json:"defaultLowerBoundTracesPerSecond"`
		PerOperation []operationJSON `json:"perOperationStrategies"`
		UpperBound   float64         `json:"defaultUpperBoundTracesPerSecond"`
	}
	operationJSON struct {
		Operation     string            `json:"operation"`
		Probabilistic probabilisticJSON `json:"probabilisticSampling"`
	}
)

// MarshalJSON returns the form with the type as a word. It fails for numbers that JSON cannot
// represent.
func (s *Strategy) MarshalJSON() ([]byte, error) { return s.marshal(s.Type.String()) }

// errLegacyLimit is returned for limits that do not fit in the 16 bits of the legacy form.
var errLegacyLimit = errors.New("rate limit above 32767 traces per second cannot be represented in the legacy form")

// CheckLegacy returns an error if LegacyJSON cannot represent the limit of the strategy.
func (s *Strategy) CheckLegacy() error {
	if s.Limit != nil && (*s.Limit > math.MaxInt16 || *s.Limit < math.MinInt16) {
		return errLegacyLimit
	}
	return nil
}

// LegacyJSON returns the form of old agents, with the type as a number. It fails if CheckLegacy
// does.
func (s *Strategy) LegacyJSON() ([]byte, error) {
	if err := s.CheckLegacy(); err != nil {
		return nil, err
	}
	return s.marshal(s.Type)
}

func (s *Strategy) marshal(typ any) ([]byte, error) {
	out := strategyJSON{Type: typ}
	if s.Probability != nil {
		out.Probabilistic = &probabilisticJSON{*s.Probability}
	}
	if s.Limit != nil {
		out.RateLimiting = &limitJSON{*s.Limit}
	}
	if o := s.Operations; o != nil {
		out.Operations = &operationsJSON{Default: o.Default, LowerBound: o.LowerBound, UpperBound: o.UpperBound,
			PerOperation: make([]operationJSON, len(o.PerOperation))}
		for i, e := range o.PerOperation {
			out.Operations.PerOperation[i] = operationJSON{e.Name, probabilisticJSON{e.Probability}}
		}
	}
	return json.Marshal(out)
}
