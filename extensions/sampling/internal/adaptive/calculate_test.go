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
	options = Options{Target: 1, Tolerance: 0.3, Initial: 0.001, Min: 1e-5, Buckets: 1, Most: 100}
	noon    = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	target  = sampling.Target{Service: "s", Operation: "o"}
)

// saw is a bucket of n traces that were sampled with p.
func saw(p float64, n int64) Bucket { return Bucket{Seen: []sampling.Seen{{Probability: p, Count: n}}} }

// decided is the next decision about an operation that has the probability p, and had others, the newest bucket first.
func decided(o Options, p float64, recent []float64, buckets ...Bucket) sampling.Decision {
	d := sampling.Decision{Target: target, Probability: p, Recent: recent, Samples: enoughSamples}
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
	steady := []Bucket{saw(0.1, 60), saw(0.1, 62), saw(0.1, 58)}
	f("on target", decided(options, 0.1, nil, steady...), 0.1, ReasonKept)
	f("within the tolerance", decided(options, 0.1, nil, saw(0.1, 75), saw(0.1, 75), saw(0.1, 75)), 0.1, ReasonKept)
	f("within the tolerance, and surely off", decided(options, 0.1, nil, saw(0.1, 75), saw(0.1, 76), saw(0.1, 74), saw(0.1, 75), saw(0.1, 75)), 0.08, ReasonFollowed)
	f("within the tolerance, and just changed", decided(options, 0.1, nil, saw(0.1, 75), saw(0.1, 6)), 0.08, ReasonFollowed)
	f("above", decided(options, 0.1, nil, saw(0.1, 600)), 0.01, ReasonFollowed)
	f("far above", decided(options, 0.001, nil, saw(0.001, 60_000_000)), 1e-5, ReasonLimited)
	f("below", decided(options, 0.1, nil, saw(0.1, 40)), 0.15, ReasonFollowed)
	f("far below", decided(options, 0.1, nil, saw(0.1, 6)), 0.2, ReasonCapped)
	f("few traces", decided(options, 0.9, nil, saw(0.9, 3)), 1, ReasonAll)
	f("all traces", decided(options, 1, nil, saw(1, 3)), 1, ReasonAll)
	f("nothing", decided(options, 0.1, nil, saw(0.1, 0)), 0.2, ReasonNothing)
	f("nothing, but for the lower bound", decided(options, 0.001, nil, Bucket{Bounded: 3}), 0.002, ReasonNothing)
	f("nothing yet", decided(options, 0.1, []float64{0.001}, saw(0.001, 0)), 0.1, ReasonUnsettled)
	f("silence", decided(options, 0.1, nil, Bucket{}, Bucket{}), 0.1, ReasonForeign)
	f("silence after traces", decided(options, 0.1, nil, Bucket{}, saw(0.1, 60), saw(0.1, 60), saw(0.1, 60)), 0.1, ReasonKept)
	f("another sampler", decided(options, 0.1, nil, saw(0.5, 6000)), 0.1, ReasonForeign)
	f("an older probability", decided(options, 0.2, []float64{0.1}, saw(0.1, 60)), 0.1, ReasonFollowed)
	f("an older probability, and already right", decided(options, 0.01, []float64{0.1}, saw(0.1, 600)), 0.01, ReasonFollowed)
	f("two probabilities at once", decided(options, 0.01, []float64{0.1},
		Bucket{Seen: []sampling.Seen{{Probability: 0.1, Count: 300}, {Probability: 0.01, Count: 30}}}), 0.01, ReasonFollowed)
	f("a configuration with another minimum", decided(Options{Target: 1, Tolerance: 0.3, Initial: 0.5, Min: 0.5, Buckets: 1}, 0.1, nil, steady...), 0.5, ReasonLimited)

	unsure := sampling.Decision{Probability: 0.1, Samples: 20}
	options.decide(&unsure, []Bucket{saw(0.1, 66), saw(0.1, 66), saw(0.1, 66)}, minute, noon)
	f("better known", unsure, 0.09091, ReasonRefined)
	if unsure.Changed != noon || unsure.Recent[0] != 0.1 || unsure.Before != 0.1 || math.Abs(unsure.QPS-66./60) > 1e-9 {
		t.Errorf("%+v", unsure)
	}
}

// With one probability the estimate is the weighted mean of the buckets' rates, the newest of which weighs most.
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
	f := func(least, want int, counts ...float64) {
		t.Helper()
		all := make([]sample, len(counts))
		for i, n := range counts {
			all[i] = sample{n, 6}
			if n < 0 {
				all[i] = sample{}
			}
		}
		if got := window(all, least); got != want {
			t.Errorf("%v, at least %d: %d, want %d", counts, least, got, want)
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

// What several collectors saw is one bucket; what is too old or too new is none.
func TestHistory(t *testing.T) {
	row := func(p float64, n int64) []sampling.Row {
		return []sampling.Row{{Target: target, Seen: []sampling.Seen{{Probability: p, Count: n}}, Bounded: 1}}
	}
	h := NewHistory([]sampling.Throughput{
		{Until: noon, Length: minute, Rows: row(0.1, 1)}, {Until: noon, Length: minute, Rows: row(0.1000001, 2)},
		{Until: noon.Add(-30 * time.Second), Length: 30 * time.Second, Rows: row(0.2, 4)}, {Until: noon.Add(-2 * minute), Length: minute},
		{Until: noon.Add(-3 * minute), Length: minute, Rows: row(0.1, 100)}, {Until: noon.Add(1), Length: minute, Rows: row(0.1, 100)},
	}, noon, minute, 3)
	b := h.All[target]
	if h.Covered != 2 || len(b) != 3 || len(b[0].Seen) != 2 || b[0].Seen[0].Count != 3 || b[0].Seen[1].Count != 4 || b[0].Bounded != 3 || len(b[2].Seen) != 0 {
		t.Errorf("%+v", h)
	}
}

// A bucket in which a collector died says nothing; one in which a collector was stopped does.
func TestDeadCollectors(t *testing.T) {
	said := func(by string, ago int, last bool) sampling.Throughput {
		return sampling.Throughput{By: by, Last: last, Until: noon.Add(-time.Duration(ago) * minute), Length: minute,
			Rows: []sampling.Row{{Target: target, Bounded: 1}}}
	}
	h := NewHistory([]sampling.Throughput{said("a", 5, false), said("a", 4, false), said("b", 4, false), said("a", 3, false),
		said("a", 2, true), said("c", 2, false), said("c", 1, false), said("c", 0, false)}, noon, minute, 4)
	var got []int64
	for _, b := range h.All[target] {
		got = append(got, b.Bounded)
	}
	if want := []int64{1, 1, 2, 0}; !slices.Equal(got, want) || h.Covered != 4 {
		t.Errorf("%v, %d covered; want %v, 4", got, h.Covered, want)
	}
}

// Operations that are not seen for the whole history go, unless there was nobody to see them.
func TestForgetting(t *testing.T) {
	before := &sampling.Calculation{Decisions: []sampling.Decision{{Target: target, Probability: 0.5}}}
	h := &History{Until: noon, Length: minute, Keep: 3, Covered: 2, All: map[sampling.Target][]Bucket{}}
	if c := Calculate(options, h, before, "me", noon); len(c.Decisions) != 1 || c.Decisions[0].Probability != 0.5 || c.Decisions[0].Reason != ReasonNoNews {
		t.Errorf("%+v", c)
	}
	h.Covered = 3
	if c := Calculate(options, h, before, "me", noon); len(c.Decisions) != 0 || c.By != "me" || c.At != noon {
		t.Errorf("%+v", c)
	}
	b := sampling.Target{Service: "s", Operation: "p"}
	h.All[b], h.All[target] = []Bucket{saw(0.001, 60), {}, {}}, []Bucket{saw(0.5, 300), {}, {}}
	c := Calculate(options, h, before, "me", noon)
	if len(c.Decisions) != 2 || c.Decisions[0].Target != target || c.Decisions[0].Probability != 0.1 || c.Decisions[1].Probability != 0.001 {
		t.Errorf("%+v", c)
	}
}

// Whatever one span says of its probability, the calculation can be kept, and no more is sampled than without it.
func TestHostileProbabilities(t *testing.T) {
	for _, p := range []float64{1, 1e-5, sampling.LeastSeen, 1e-100, 1e-160, 1e-200, 5e-324, 0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		c := NewCounter(10, 0)
		c.Observe("", append(slices.Repeat([]sampling.Root{root("o", sampling.SamplerProbabilistic, 0.001)}, 600), root("o", sampling.SamplerProbabilistic, p)))
		seen := sampling.Throughput{By: "me", Until: noon, Length: minute, Rows: c.Take()}
		made := Calculate(options, NewHistory([]sampling.Throughput{seen}, noon, minute, 10), nil, "me", noon)
		if err := sampling.NewMemory(time.Now).SaveCalculation(t.Context(), made); err != nil || len(made.Decisions) != 1 || made.Decisions[0].Probability > 1e-4 {
			t.Errorf("with %v: %v, %+v", p, err, made.Decisions)
		}
	}
}

// Of more operations than may be, those keep their probability that have one, whoever floods.
func TestMoreOperationsThanMayBe(t *testing.T) {
	few := options
	few.Most = 3
	seen := func(names ...string) *History {
		h := &History{Until: noon, Length: minute, Keep: 1, Covered: 1, All: map[sampling.Target][]Bucket{}}
		for _, name := range names {
			h.All[sampling.Target{Service: "s", Operation: name}] = []Bucket{saw(0.001, 600)}
		}
		return h
	}
	before := Calculate(few, seen("x", "y"), nil, "me", noon)
	after := Calculate(few, seen("a", "b", "c", "x", "y"), before, "me", noon)
	var names []string
	for _, d := range after.Decisions {
		names = append(names, d.Operation)
	}
	if !slices.Equal(names, []string{"a", "x", "y"}) {
		t.Errorf("%v have a probability", names)
	}
}
