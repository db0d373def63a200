package adaptive

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Counter counts the traces that begin, by operation and the probability with which they were sampled.
type Counter struct {
	most       int     // operations
	mostNames  int     // bytes
	lowerBound float64 // traces per second of the strategies' lower bound

	unobserved atomic.Int64 // roots beyond the bounds

	mu    sync.Mutex
	all   map[sampling.Target]*tally
	names int // bytes of the names in all
}

// averageName is how long the names of an operation, its service and its tenant may be together, on average where there are as many as may be.
// All intervals that are kept have them.
const averageName = 200

// tally is what was seen of an operation since the last Take.
type tally struct {
	seen    [sampling.MaxSeen]sampling.Seen
	n       int // of seen
	bounded int64
	any     bool
}

// NewCounter returns a counter for so many operations. lowerBound is the lower bound of the strategies: some clients say no more of a trace
// that was sampled because of it than that they have this limit.
func NewCounter(most int, lowerBound float64) *Counter {
	return &Counter{most: most, mostNames: max(most*averageName, 3*sampling.MaxName), lowerBound: lowerBound,
		all: map[sampling.Target]*tally{}}
}

// Observe implements sampling.Observer.
func (c *Counter) Observe(tenant string, roots []sampling.Root) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range roots {
		r := &roots[i]
		t, ok := c.all[sampling.Target{Tenant: tenant, Service: r.Service, Operation: r.Operation}]
		if !ok {
			if t = c.begin(tenant, r); t == nil {
				continue
			}
		}
		t.add(r, c.lowerBound)
	}
}

// Unobserved returns how many roots were not counted: their names cannot be used, or there were too many operations.
func (c *Counter) Unobserved() int64 { return c.unobserved.Load() }

// begin makes the tally of an operation, nil if it shall not be counted. The caller holds mu.
func (c *Counter) begin(tenant string, r *sampling.Root) *tally {
	usable := func(name string) bool { return len(name) <= sampling.MaxName && utf8.ValidString(name) }
	names := len(tenant) + len(r.Service) + len(r.Operation)
	if len(c.all) >= c.most || c.names+names > c.mostNames || r.Service == "" || r.Operation == "" ||
		!usable(tenant) || !usable(r.Service) || !usable(r.Operation) {
		c.unobserved.Add(1)
		return nil
	}
	c.names += names
	t := new(tally)
	c.all[sampling.Target{Tenant: strings.Clone(tenant), Service: strings.Clone(r.Service), Operation: strings.Clone(r.Operation)}] = t
	return t
}

// add counts a trace. One that was not sampled by a probability makes its operation known, and no more.
func (t *tally) add(r *sampling.Root, lowerBound float64) {
	t.any = true
	switch r.Sampler {
	case sampling.SamplerProbabilistic:
		t.note(r.Param, 1)
	case sampling.SamplerLowerBound: // its parameter is the probability that would have decided
		t.bounded++
		t.note(r.Param, 0)
	case sampling.SamplerRateLimiting:
		if math.Abs(r.Param-lowerBound) <= lowerBound*sameProbability {
			t.bounded++
		}
	}
}

// sameProbability is the relative difference of two probabilities that are one: clients write them as text, or with few digits.
const sameProbability = 1e-4

func same(a, b float64) bool { return math.Abs(a-b) <= b*sameProbability }

// note counts n traces with a probability. Beyond MaxSeen, they count with the nearest one.
func (t *tally) note(p float64, n int64) {
	if !(p >= sampling.LeastSeen && p <= 1) {
		return
	}
	nearest := 0
	for i := range t.n {
		if same(p, t.seen[i].Probability) {
			t.seen[i].Count += n
			return
		}
		if math.Abs(p-t.seen[i].Probability) < math.Abs(p-t.seen[nearest].Probability) {
			nearest = i
		}
	}
	if t.n == len(t.seen) {
		t.seen[nearest].Count += n
		return
	}
	t.seen[t.n] = sampling.Seen{Probability: p, Count: n}
	t.n++
}

// Take returns what was seen since the last call. Operations of which nothing was seen make room for others.
func (c *Counter) Take() []sampling.Row {
	c.mu.Lock()
	defer c.mu.Unlock()
	rows := make([]sampling.Row, 0, len(c.all))
	for target, t := range c.all {
		if !t.any {
			delete(c.all, target)
			c.names -= len(target.Tenant) + len(target.Service) + len(target.Operation)
			continue
		}
		rows = append(rows, sampling.Row{Target: target, Seen: append([]sampling.Seen(nil), t.seen[:t.n]...), Bounded: t.bounded})
		*t = tally{}
	}
	return rows
}
