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

// Type says which member of a strategy counts for clients that know nothing of operations. The numbers are those of the wire.
type Type uint8

// The types; there is none for strategies by operation.
const (
	Probabilistic Type = iota
	RateLimiting
)

// String returns the name on the wire.
func (t Type) String() string {
	if t == RateLimiting {
		return "RATE_LIMITING"
	}
	return "PROBABILISTIC"
}

// Strategy is what a client is told. Clients look at Operations first, and where these are present at nothing else. A Strategy that was
// handed out is not changed any more.
type Strategy struct {
	Type        Type
	Probability *float64 // share of traces, from 0 to 1; nil: none is told
	Limit       *int32   // traces per second and process; nil: none is told
	Operations  *Operations
}

// Operations are strategies by the operation with which a trace begins.
type Operations struct {
	Default    float64 // probability of operations that are not listed
	LowerBound float64 // traces per second that are sampled of every operation, whatever its probability
	UpperBound float64 // traces per second; 0: no bound. No client is known to heed it
	Each       []Operation
}

// Operation is the strategy of one operation.
type Operation struct {
	Name        string
	Probability float64
}

// NewProbabilistic returns the strategy that samples a share of all traces.
func NewProbabilistic(probability float64) *Strategy {
	return &Strategy{Type: Probabilistic, Probability: &probability}
}

// NewRateLimiting returns the strategy that samples so many traces per second at most.
func NewRateLimiting(perSecond int32) *Strategy {
	return &Strategy{Type: RateLimiting, Limit: &perSecond}
}

// Equal reports whether two strategies tell clients the same.
func (s *Strategy) Equal(o *Strategy) bool {
	return s.Type == o.Type && same(s.Probability, o.Probability) && same(s.Limit, o.Limit) && s.Operations.equal(o.Operations)
}

func (o *Operations) equal(p *Operations) bool {
	if o == nil || p == nil {
		return o == p
	}
	return o.Default == p.Default && o.LowerBound == p.LowerBound && o.UpperBound == p.UpperBound && slices.Equal(o.Each, p.Each)
}

func same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Sampler is what a client makes of a strategy for the traces that begin with one operation.
type Sampler struct {
	Type  string  `json:"type"`  // `probabilistic` or `ratelimiting`, as the tag sampler.type of root spans says
	Param float64 `json:"param"` // probability, or traces per second
	// LowerBound is how many traces per second are sampled in any case; their tag sampler.type is `lowerbound`.
	LowerBound float64 `json:"lowerBound,omitempty"`
	// Named: the operation has a strategy of its own.
	Named bool `json:"ofOperation"`
}

// Sampler returns what decides about traces that begin with the operation, as clients read a strategy: operations first.
func (s *Strategy) Sampler(operation string) Sampler {
	if o := s.Operations; o != nil {
		out := Sampler{Type: "probabilistic", Param: o.Default, LowerBound: o.LowerBound}
		if i := slices.IndexFunc(o.Each, func(e Operation) bool { return e.Name == operation }); i >= 0 {
			out.Param, out.Named = o.Each[i].Probability, true
		}
		return out
	}
	if s.Limit != nil && (s.Type == RateLimiting || s.Probability == nil) {
		return Sampler{Type: "ratelimiting", Param: float64(*s.Limit)}
	}
	return Sampler{Type: "probabilistic", Param: *cmp.Or(s.Probability, new(float64))}
}

// String returns the strategy in a few words: `probabilistic 0.5`, `probabilistic 0.5; operations of their own: 12`, `7 traces per second`.
func (s *Strategy) String() string {
	all := s.Sampler("")
	text := "probabilistic " + strconv.FormatFloat(all.Param, 'g', -1, 64)
	if all.Type == "ratelimiting" {
		text = strconv.FormatFloat(all.Param, 'f', -1, 64) + " traces per second"
	}
	if o := s.Operations; o != nil && len(o.Each) > 0 {
		text += fmt.Sprintf("; operations of their own: %d", len(o.Each))
	}
	return text
}

// The JSON forms, with members in the order in which clients know them. Those that are absent are left out, others are written even if
// zero.
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
		Most int32 `json:"maxTracesPerSecond"`
	}
	operationsJSON struct {
		Default    float64         `json:"defaultSamplingProbability"`
		LowerBound float64         `json:"defaultLowerBoundTracesPerSecond"`
		Each       []operationJSON `json:"perOperationStrategies"`
		UpperBound float64         `json:"defaultUpperBoundTracesPerSecond"`
	}
	operationJSON struct {
		Operation     string            `json:"operation"`
		Probabilistic probabilisticJSON `json:"probabilisticSampling"`
	}
)

// MarshalJSON returns the form in which the type is a word. It fails for numbers that JSON does not have.
func (s *Strategy) MarshalJSON() ([]byte, error) { return s.marshal(s.Type.String()) }

// errLegacyLimit is about a number that has 16 bits in the legacy form.
var errLegacyLimit = errors.New("a limit above 32767 traces per second has no legacy form")

// CheckLegacy returns an error where LegacyJSON has no room for the strategy's limit.
func (s *Strategy) CheckLegacy() error {
	if s.Limit != nil && (*s.Limit > math.MaxInt16 || *s.Limit < math.MinInt16) {
		return errLegacyLimit
	}
	return nil
}

// LegacyJSON returns the form of old agents, in which the type is a number. It fails where CheckLegacy does, too.
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
			Each: make([]operationJSON, len(o.Each))}
		for i, e := range o.Each {
			out.Operations.Each[i] = operationJSON{e.Name, probabilisticJSON{e.Probability}}
		}
	}
	return json.Marshal(out)
}
