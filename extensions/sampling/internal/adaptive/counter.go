package adaptive

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Counter counts new traces by operation and sampling probability. It is safe for concurrent use.
type Counter struct {
	maxOperations int
	maxNameBytes  int
	lowerBound    float64 // lower bound of the strategies, in traces per second

	unobserved atomic.Int64 // root spans that were not counted

	mu    sync.Mutex
	all   map[sampling.OperationKey]*tally
	names int // total length of the names in all, in bytes
}

// averageName limits the total length of names, because each kept interval stores all of them. It
// is the average length of the names of tenant, service and operation together, at the maximum
// number of operations.
const averageName = 200

// tally holds the counts of an operation since the last Take.
type tally struct {
	seen    [sampling.MaxProbabilities]sampling.ProbabilityCount
	n       int // number of used elements of seen
	bounded int64
	any     bool
}

// NewCounter returns a counter for at most maxOperations operations. lowerBound is the lower bound
// of the strategies, in traces per second: some clients report it as a rate limit if it was the
// reason for sampling.
func NewCounter(maxOperations int, lowerBound float64) *Counter {
	return &Counter{maxOperations: maxOperations, maxNameBytes: max(maxOperations*averageName, 3*sampling.MaxName), lowerBound: lowerBound,
		all: map[sampling.OperationKey]*tally{}}
}

// Observe implements sampling.Observer.
func (c *Counter) Observe(tenant string, roots []sampling.Root) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range roots {
		r := &roots[i]
		t, ok := c.all[sampling.OperationKey{Tenant: tenant, Service: r.Service, Operation: r.Operation}]
		if !ok {
			if t = c.beginRoot(tenant, r); t == nil {
				continue
			}
		}
		t.addRoot(r, c.lowerBound)
	}
}

// Unobserved returns the number of root spans that were not counted because of invalid names or too
// many operations.
func (c *Counter) Unobserved() int64 { return c.unobserved.Load() }

// beginRoot adds an operation. It returns nil if the operation must not be counted. The caller
// holds mu.
func (c *Counter) beginRoot(tenant string, r *sampling.Root) *tally {
	usable := func(name string) bool { return len(name) <= sampling.MaxName && utf8.ValidString(name) }
	names := len(tenant) + len(r.Service) + len(r.Operation)
	if len(c.all) >= c.maxOperations || c.names+names > c.maxNameBytes || r.Service == "" || r.Operation == "" ||
		!usable(tenant) || !usable(r.Service) || !usable(r.Operation) {
		c.unobserved.Add(1)
		return nil
	}
	c.names += names
	t := new(tally)
	c.all[sampling.OperationKey{Tenant: strings.Clone(tenant), Service: strings.Clone(r.Service),
		Operation: strings.Clone(r.Operation)}] = t
	return t
}

// addRoot counts a trace. A trace that was not sampled with a probability only makes its operation
// known.
func (t *tally) addRoot(r *sampling.Root, lowerBound float64) {
	t.any = true
	switch r.Sampler {
	case sampling.SamplerProbabilistic:
		t.note(r.Param, 1)
	case sampling.SamplerLowerBound: // Param is the probability with which the trace was not sampled
		t.bounded++
		t.note(r.Param, 0)
	case sampling.SamplerRateLimiting:
		if math.Abs(r.Param-lowerBound) <= lowerBound*sameProbability {
			t.bounded++
		}
	}
}

// sameProbability is the maximum relative difference of two probabilities that count as equal:
// clients write them as text, or with few digits.
const sameProbability = 1e-4

// same reports whether two probabilities count as equal.
func same(a, b float64) bool { return math.Abs(a-b) <= b*sameProbability }

// note counts n traces with a probability. If there are already MaxProbabilities others, the
// nearest one is used.
func (t *tally) note(p float64, n int64) {
	if !(p >= sampling.MinProbability && p <= 1) {
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
	t.seen[t.n] = sampling.ProbabilityCount{Probability: p, Count: n}
	t.n++
}

// Take returns the counts since the last call, and resets them. Operations without counts are
// removed.
func (c *Counter) Take() []sampling.ThroughputRow {
	c.mu.Lock()
	defer c.mu.Unlock()
	rows := make([]sampling.ThroughputRow, 0, len(c.all))
	for target, t := range c.all {
		if !t.any {
			delete(c.all, target)
			c.names -= len(target.Tenant) + len(target.Service) + len(target.Operation)
			continue
		}
		rows = append(rows, sampling.ThroughputRow{OperationKey: target,
			Counts: append([]sampling.ProbabilityCount(nil), t.seen[:t.n]...), ByLowerBound: t.bounded})
		*t = tally{}
	}
	return rows
}
