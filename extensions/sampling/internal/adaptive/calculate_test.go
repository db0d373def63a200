package adaptive

import (
	"math"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const minute = time.Minute

var (
	options = Options{Target: 1, Tolerance: 0.3, Initial: 0.001, Min: 1e-5, MinBuckets: 1, MaxOperations: 100}
	noon    = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	target  = sampling.OperationKey{Service: "s", Operation: "o"}
)

// bucket returns a bucket with n traces that were sampled with p.
func bucket(p float64, n int64) Bucket {
	return Bucket{Counts: []sampling.ProbabilityCount{{Probability: p, Count: n}}}
}

// decided returns the next decision about an operation with the probability p and the previous
// probabilities recent. The newest bucket comes first.
func decided(o Options, p float64, recent []float64, buckets ...Bucket) sampling.Decision {
	d := sampling.Decision{OperationKey: target, Probability: p, Recent: recent, Samples: enoughSamples}
	o.decide(&d, buckets, minute, noon)
	return d
}

func TestDecisions(t *testing.T) {
	f := func(name string, d sampling.Decision, p float64, reason string) {
		t.Helper()
		if d.Probability != p || d.Reason != reason {
			t.Errorf("%s: %v, %s; want %v, %s", name, d.Probability, d.Reason, p, reason)
		}
	}
	steady := []Bucket{bucket(0.1, 60), bucket(0.1, 62), bucket(0.1, 58)}
	f("on target", decided(options, 0.1, nil, steady...), 0.1, ReasonKept)
	f("within the tolerance", decided(options, 0.1, nil, bucket(0.1, 75), bucket(0.1, 75), bucket(0.1, 75)), 0.1, ReasonKept)
	f("within the tolerance, but significantly off", decided(options, 0.1, nil, bucket(0.1, 75), bucket(0.1, 76), bucket(0.1, 74),
		bucket(0.1, 75), bucket(0.1, 75)), 0.08, ReasonFollowed)
	f("within the tolerance, but just changed", decided(options, 0.1, nil, bucket(0.1, 75), bucket(0.1, 6)), 0.08, ReasonFollowed)
	f("above", decided(options, 0.1, nil, bucket(0.1, 600)), 0.01, ReasonFollowed)
	f("far above", decided(options, 0.001, nil, bucket(0.001, 60_000_000)), 1e-5, ReasonLimited)
	f("below", decided(options, 0.1, nil, bucket(0.1, 40)), 0.15, ReasonFollowed)
	f("far below", decided(options, 0.1, nil, bucket(0.1, 6)), 0.2, ReasonCapped)
	f("few traces", decided(options, 0.9, nil, bucket(0.9, 3)), 1, ReasonAll)
	f("all traces", decided(options, 1, nil, bucket(1, 3)), 1, ReasonAll)
	f("nothing", decided(options, 0.1, nil, bucket(0.1, 0)), 0.2, ReasonNothing)
	f("nothing except the lower bound", decided(options, 0.001, nil, Bucket{ByLowerBound: 3}), 0.002, ReasonNothing)
	f("nothing yet", decided(options, 0.1, []float64{0.001}, bucket(0.001, 0)), 0.1, ReasonUnsettled)
	f("no counts", decided(options, 0.1, nil, Bucket{}, Bucket{}), 0.1, ReasonForeign)
	f("no counts after traces", decided(options, 0.1, nil, Bucket{}, bucket(0.1, 60), bucket(0.1, 60), bucket(0.1, 60)), 0.1, ReasonKept)
	f("another sampler", decided(options, 0.1, nil, bucket(0.5, 6000)), 0.1, ReasonForeign)
	f("an older probability", decided(options, 0.2, []float64{0.1}, bucket(0.1, 60)), 0.1, ReasonFollowed)
	f("an older probability, already correct", decided(options, 0.01, []float64{0.1}, bucket(0.1, 600)), 0.01, ReasonFollowed)
	f("two probabilities at once", decided(options, 0.01, []float64{0.1},
		Bucket{Counts: []sampling.ProbabilityCount{{Probability: 0.1, Count: 300}, {Probability: 0.01, Count: 30}}}), 0.01, ReasonFollowed)
	f("a configuration with another minimum", decided(Options{Target: 1, Tolerance: 0.3, Initial: 0.5, Min: 0.5, MinBuckets: 1}, 0.1,
		nil, steady...), 0.5, ReasonLimited)

	unsure := sampling.Decision{Probability: 0.1, Samples: 20}
	options.decide(&unsure, []Bucket{bucket(0.1, 66), bucket(0.1, 66), bucket(0.1, 66)}, minute, noon)
	f("better estimate", unsure, 0.09091, ReasonRefined)
	if unsure.Changed != noon || unsure.Recent[0] != 0.1 || unsure.Before != 0.1 || math.Abs(unsure.QPS-66./60) > 1e-9 {
		t.Errorf("%+v", unsure)
	}
}

// With one probability the estimate is the weighted mean of the rates of the buckets. The newest
// bucket has the largest weight.
func TestWeights(t *testing.T) {
	all := []sample{{60, 6}, {120, 6}, {180, 6}}
	want := (81*10. + 16*20 + 1*30) / 98
	if e := weigh(all, 3); math.Abs(e.rate-want) > 1e-9 || e.buckets != 3 || e.total.count != 360 {
		t.Errorf("%+v, want a rate of %v", e, want)
	}
	if e := weigh(nil, 1); e.rate != 0 || e.samples != 0 {
		t.Errorf("%+v", e)
	}
}

func TestWindow(t *testing.T) {
	f := func(minimum, want int, counts ...float64) {
		t.Helper()
		all := make([]sample, len(counts))
		for i, n := range counts {
			all[i] = sample{n, 6}
			if n < 0 {
				all[i] = sample{}
			}
		}
		if got := window(all, minimum); got != want {
			t.Errorf("%v, at least %d: %d, want %d", counts, minimum, got, want)
		}
	}
	f(1, 5, 60, 66, 54, 59, 70)
	f(1, 1, 200, 60, 61, 59, 70)
	f(1, 1, 0, 0, 61, 59, 70)
	f(2, 2, 0, 0, 61, 59, 70)
	f(1, 2, 99, 100, 98, 60, 59, 61, 60, 60, 60, 60)
	f(1, 1, 60, 60, 600, 10, 10)
	f(3, 3, 600, 10, 10, 10)
	f(1, 4, -1, -1, 60, 60)
	f(1, 3, -1, -1, 60, 600)
	f(1, 0)
}

// Counts of several collectors are joined in one bucket. Counts outside the history are ignored.
func TestHistory(t *testing.T) {
	row := func(p float64, n int64) []sampling.ThroughputRow {
		return []sampling.ThroughputRow{{OperationKey: target, Counts: []sampling.ProbabilityCount{{Probability: p, Count: n}},
			ByLowerBound: 1}}
	}
	h := NewHistory([]sampling.Throughput{
		{Until: noon, Length: minute, Rows: row(0.1, 1)}, {Until: noon, Length: minute, Rows: row(0.1000001, 2)},
		{Until: noon.Add(-30 * time.Second), Length: 30 * time.Second, Rows: row(0.2, 4)}, {Until: noon.Add(-2 * minute), Length: minute},
		{Until: noon.Add(-3 * minute), Length: minute, Rows: row(0.1, 100)}, {Until: noon.Add(1), Length: minute, Rows: row(0.1, 100)},
	}, noon, minute, 3)
	b := h.All[target]
	if h.Covered != 2 || len(b) != 3 || len(b[0].Counts) != 2 || b[0].Counts[0].Count != 3 || b[0].Counts[1].Count != 4 ||
		b[0].ByLowerBound != 3 || len(b[2].Counts) != 0 {
		t.Errorf("%+v", h)
	}
}

// A bucket in which a collector crashed is empty; a collector that was stopped does not matter.
func TestCrashedCollectors(t *testing.T) {
	report := func(by string, ago int, last bool) sampling.Throughput {
		return sampling.Throughput{By: by, Last: last, Until: noon.Add(-time.Duration(ago) * minute), Length: minute,
			Rows: []sampling.ThroughputRow{{OperationKey: target, ByLowerBound: 1}}}
	}
	h := NewHistory([]sampling.Throughput{report("a", 5, false), report("a", 4, false), report("b", 4, false), report("a", 3, false),
		report("a", 2, true), report("c", 2, false), report("c", 1, false), report("c", 0, false)}, noon, minute, 4)
	var got []int64
	for _, b := range h.All[target] {
		got = append(got, b.ByLowerBound)
	}
	if want := []int64{1, 1, 2, 0}; !slices.Equal(got, want) || h.Covered != 4 {
		t.Errorf("%v, %d covered; want %v, 4", got, h.Covered, want)
	}
}

// Operations without counts in the whole history are removed, unless parts of the history are
// missing.
func TestForgetting(t *testing.T) {
	before := &sampling.Calculation{Decisions: []sampling.Decision{{OperationKey: target, Probability: 0.5}}}
	h := &History{Until: noon, Length: minute, Size: 3, Covered: 2, All: map[sampling.OperationKey][]Bucket{}}
	if c := Calculate(options, h, before, "me", noon); len(c.Decisions) != 1 || c.Decisions[0].Probability != 0.5 ||
		c.Decisions[0].Reason != ReasonNoNews {
		t.Errorf("%+v", c)
	}
	h.Covered = 3
	if c := Calculate(options, h, before, "me", noon); len(c.Decisions) != 0 || c.By != "me" || c.At != noon {
		t.Errorf("%+v", c)
	}
	b := sampling.OperationKey{Service: "s", Operation: "p"}
	h.All[b], h.All[target] = []Bucket{bucket(0.001, 60), {}, {}}, []Bucket{bucket(0.5, 300), {}, {}}
	c := Calculate(options, h, before, "me", noon)
	if len(c.Decisions) != 2 || c.Decisions[0].OperationKey != target || c.Decisions[0].Probability != 0.1 ||
		c.Decisions[1].Probability != 0.001 {
		t.Errorf("%+v", c)
	}
}

// An extreme probability in a single span does not break the calculation, and does not raise the
// result.
func TestHostileProbabilities(t *testing.T) {
	for _, p := range []float64{1, 1e-5, sampling.MinProbability, 1e-100, 1e-160, 1e-200, 5e-324, 0, -1, math.NaN(), math.Inf(1),
		math.Inf(-1)} {
		c := NewCounter(10, 0)
		c.Observe("", append(slices.Repeat([]sampling.Root{root("o", sampling.SamplerProbabilistic, 0.001)}, 600),
			root("o", sampling.SamplerProbabilistic, p)))
		seen := sampling.Throughput{By: "me", Until: noon, Length: minute, Rows: c.Take()}
		made := Calculate(options, NewHistory([]sampling.Throughput{seen}, noon, minute, 10), nil, "me", noon)
		if err := sampling.NewMemory(time.Now).SaveCalculation(t.Context(), made); err != nil || len(made.Decisions) != 1 ||
			made.Decisions[0].Probability > 1e-4 {
			t.Errorf("with %v: %v, %+v", p, err, made.Decisions)
		}
	}
}

// If there are too many operations, those that already have a probability keep it.
func TestTooManyOperations(t *testing.T) {
	few := options
	few.MaxOperations = 3
	history := func(names ...string) *History {
		h := &History{Until: noon, Length: minute, Size: 1, Covered: 1, All: map[sampling.OperationKey][]Bucket{}}
		for _, name := range names {
			h.All[sampling.OperationKey{Service: "s", Operation: name}] = []Bucket{bucket(0.001, 600)}
		}
		return h
	}
	before := Calculate(few, history("x", "y"), nil, "me", noon)
	after := Calculate(few, history("a", "b", "c", "x", "y"), before, "me", noon)
	var names []string
	for _, d := range after.Decisions {
		names = append(names, d.Operation)
	}
	if !slices.Equal(names, []string{"a", "x", "y"}) {
		t.Errorf("operations with a probability: %v", names)
	}
}
