package sampling

import (
	"context"
	"time"
)

// Store keeps what adaptive sampling has to remember, for all collectors that share the store: what they saw, what came of it, and which
// of them calculates. It is a capability of span stores, named through a pipeline.Ref. Its methods are called by several goroutines and
// collectors at once. What is handed to a store and what it returns is shared: neither side changes it any more. After an error of a
// method that adds something it is open whether it was kept.
type Store interface {
	Throughputs
	Ledger
	Leases
}

// Throughputs are what collectors saw.
type Throughputs interface {
	// AddThroughput keeps what a collector saw, and forgets what ended at or before since.
	AddThroughput(ctx context.Context, t Throughput, since time.Time) error
	// Throughput returns what was kept of the intervals that ended behind after, until the time until, in no order.
	Throughput(ctx context.Context, after, until time.Time) ([]Throughput, error)
}

// Ledger holds the latest calculation.
type Ledger interface {
	// SaveCalculation replaces the latest calculation.
	SaveCalculation(ctx context.Context, c *Calculation) error
	// LatestCalculation returns it; nil if there is none.
	LatestCalculation(ctx context.Context) (*Calculation, error)
}

// Leases see to it that one collector at a time does something.
type Leases interface {
	// Lease gives a resource to an owner for ttl, or for another ttl if it has the resource already. The result says who has it now, which
	// is somebody else where that one's lease has not run out.
	Lease(ctx context.Context, resource, owner string, ttl time.Duration) (Lease, error)
	// EndLease gives a resource back. It does nothing if somebody else has it.
	EndLease(ctx context.Context, resource, owner string) error
}

// Lease says who has a resource. Until is by the clock of the store; it is zero where there never was a lease.
type Lease struct {
	Owner string
	Until time.Time
}

// Bounds of what a store keeps, whatever it is told. Of what is beyond them, the oldest goes.
const (
	MaxThroughputs = 2_000     // of all collectors
	MaxRows        = 1_000_000 // in all throughputs together
	MaxDecisions   = 200_000   // operations in a calculation
	// MaxSeen is how many probabilities are told apart for an operation in one interval.
	MaxSeen = 10
	// LeastSeen is the least probability that is believed. A trace would stand for more traces than there are with a smaller one, and its square
	// is still a number.
	LeastSeen = 1e-12
	// MaxRecent is how many probabilities are remembered that an operation had.
	MaxRecent = 16
	// MaxName bounds the names of services and operations, in bytes. Longer ones are not observed.
	MaxName = 1 << 10
)

// Throughput is what one collector saw of the traces that began in an interval.
type Throughput struct {
	By string `json:"by,omitempty"` // the collector
	// Last: the collector was stopped. One that says nothing any more without having said so died, and what it saw in its last interval is
	// lost.
	Last   bool          `json:"last,omitempty"`
	Until  time.Time     `json:"until"` // the end of the interval
	Length time.Duration `json:"length"`
	Rows   []Row         `json:"rows,omitempty"` // each operation once
}

// Target is an operation with which traces begin.
type Target struct {
	Tenant    string `json:"tenant,omitempty"`
	Service   string `json:"service"`
	Operation string `json:"operation"`
}

// Row is what was seen of one operation.
type Row struct {
	Target
	// Seen are the probabilities that clients sampled with, at most MaxSeen, and how many traces they sampled by them.
	Seen []Seen `json:"seen,omitempty"`
	// Bounded is the number of traces that were sampled only because of the strategy's lower bound.
	Bounded int64 `json:"bounded,omitempty"`
}

// Seen is a probability and the number of traces that were sampled by it; 0 where clients told that they have it.
type Seen struct {
	Probability float64 `json:"p"`
	Count       int64   `json:"n"`
}

// Calculation is a set of probabilities.
type Calculation struct {
	By        string     `json:"by"` // the collector
	At        time.Time  `json:"at"` // the round that it was made for
	Decisions []Decision `json:"decisions,omitempty"`
}

// Decision is the probability of an operation, and what it comes from.
type Decision struct {
	Target
	Probability float64 `json:"probability"`
	// Before is the probability that the operation had until this calculation.
	Before float64 `json:"before"`
	// QPS is how many traces per second would be sampled with Before.
	QPS float64 `json:"qps"`
	// Samples is on how many traces the probability rests.
	Samples float64 `json:"samples"`
	// Reason is a Reason of this package.
	Reason string `json:"reason"`
	// Changed is when the probability became what it is.
	Changed time.Time `json:"changed"`
	// Recent are probabilities that it had, the latest first, at most MaxRecent.
	Recent []float64 `json:"recent,omitempty"`
}

// Sampler types of observed traces, as root spans name them.
const (
	SamplerProbabilistic = "probabilistic"
	SamplerLowerBound    = "lowerbound"
	SamplerRateLimiting  = "ratelimiting"
	SamplerConst         = "const"
)

// Observer is told of traces that begin: adaptive sampling counts them.
type Observer interface {
	// Observe takes roots, and keeps none of their strings.
	Observe(tenant string, roots []Root)
}

// Root is the root span of a sampled trace.
type Root struct {
	Service, Operation string
	Sampler            string  // what decided, see SamplerProbabilistic
	Param              float64 // its parameter
}
