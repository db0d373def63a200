package strategies

import (
	"encoding/hex"
	"math"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestShapes pins the encoded bytes of every kind of strategy.
func TestShapes(t *testing.T) {
	f := func(s *sampling.Strategy, want string) {
		t.Helper()
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(ToProto(s))
		if err != nil || hex.EncodeToString(b) != want {
			t.Errorf("%s: %x, %v, want %s", s, b, err, want)
		}
		var m api_v2.SamplingStrategyResponse
		if err := proto.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		back, err := FromProto(&m)
		if err != nil || !back.Equal(s) {
			t.Errorf("%s came back as %v, %v", s, back, err)
		}
	}
	f(sampling.NewProbabilistic(0.5), "120909000000000000e03f")
	f(sampling.NewProbabilistic(0), "1200")
	f(sampling.NewRateLimiting(7), "08011a020807")
	f(&sampling.Strategy{Probability: new(0.5), Operations: &sampling.Operations{Default: 0.5, LowerBound: 1, UpperBound: 2,
		PerOperation: []sampling.Operation{{Name: "op", Probability: 0.25}}}},
		"120909000000000000e03f222c09000000000000e03f11000000000000f03f1a0f0a026f70120909000000000000d03f210000000000000040")
	f(&sampling.Strategy{Operations: &sampling.Operations{PerOperation: []sampling.Operation{}}}, "2200")
}

func TestInvalidStrategies(t *testing.T) {
	rate := func(r float64) *api_v2.ProbabilisticSamplingStrategy {
		return &api_v2.ProbabilisticSamplingStrategy{SamplingRate: r}
	}
	operation := func(o *api_v2.OperationSamplingStrategy) *api_v2.SamplingStrategyResponse {
		return &api_v2.SamplingStrategyResponse{OperationSampling: &api_v2.PerOperationSamplingStrategies{
			PerOperationStrategies: []*api_v2.OperationSamplingStrategy{o}}}
	}
	for want, m := range map[string]*api_v2.SamplingStrategyResponse{
		"sampling strategy has unknown type 2":                 {StrategyType: 2, ProbabilisticSampling: rate(1)},
		"sampling strategy is empty":                           {},
		"sampling strategy contains NaN; want a finite number": {ProbabilisticSampling: rate(math.NaN())},
		"sampling strategy contains +Inf; want a finite number": {OperationSampling: &api_v2.PerOperationSamplingStrategies{
			DefaultLowerBoundTracesPerSecond: math.Inf(1)}},
		`sampling strategy of operation "a" is empty`:                          operation(&api_v2.OperationSamplingStrategy{Operation: "a"}),
		`operation "a": sampling strategy contains -Inf; want a finite number`: operation(&api_v2.OperationSamplingStrategy{Operation: "a", ProbabilisticSampling: rate(math.Inf(-1))}),
	} {
		if s, err := FromProto(m); err == nil || err.Error() != want {
			t.Errorf("%v, %v, want %s", s, err, want)
		}
	}
}

// Every message is a strategy that survives a round trip, or an error.
func FuzzFromProto(f *testing.F) {
	f.Add([]byte{0x12, 0x00})
	f.Add([]byte{0x08, 0x01, 0x1a, 0x02, 0x08, 0x07})
	f.Add([]byte{0x22, 0x02, 0x1a, 0x00})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m api_v2.SamplingStrategyResponse
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		s, err := FromProto(&m)
		if err != nil {
			return
		}
		if _, err := s.MarshalJSON(); err != nil {
			t.Errorf("%v has no JSON: %v", s, err)
		}
		if back, err := FromProto(ToProto(s)); err != nil || !back.Equal(s) {
			t.Errorf("%v came back as %v, %v", s, back, err)
		}
	})
}
