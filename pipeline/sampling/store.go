package sampling

import (
	"context"
	"time"
)

// Store holds the shared state of adaptive sampling: the trace counts of all collectors, the latest
// calculation, and the lease of the leader. Span stores implement it; components refer to it
// through a pipeline.Ref. Its methods must be safe for concurrent use by several collectors. Values
// passed to and returned from a store are shared and must not be modified. If a method that adds
// data returns an error, the data may or may not have been stored.
type Store interface {
	ThroughputStore
	CalculationStore
	LeaseStore
}

// ThroughputStore stores the trace counts of collectors.
type ThroughputStore interface {
	// AddThroughput stores the counts of a collector, and deletes counts of intervals that ended at
	// or before since.
	AddThroughput(ctx context.Context, t Throughput, since time.Time) error
	// Throughput returns the counts of intervals that ended after the time after and at or before
	// until, in any order.
	Throughput(ctx context.Context, after, until time.Time) ([]Throughput, error)
}

// CalculationStore stores the latest calculation.
type CalculationStore interface {
	// SaveCalculation replaces the latest calculation.
	SaveCalculation(ctx context.Context, c *Calculation) error
	// LatestCalculation returns the latest calculation; nil if there is none.
	LatestCalculation(ctx context.Context) (*Calculation, error)
}

// LeaseStore grants leases, so that one collector at a time performs a task.
type LeaseStore interface {
	// Lease acquires or renews the lease of a resource for ttl. If another owner holds a lease that
	// has not expired, that lease is returned unchanged.
	Lease(ctx context.Context, resource, owner string, ttl time.Duration) (Lease, error)
	// EndLease releases a lease. It has no effect if another owner holds it.
	EndLease(ctx context.Context, resource, owner string) error
}

// Lease is the ownership of a resource. Until is a time on the store's clock; it is zero if there
// was never a lease.
type Lease struct {
	Owner string
	Until time.Time
}

// Limits of a store. If a limit is exceeded, the oldest data is deleted.
const (
	MaxThroughputs = 2_000     // over all collectors
	MaxRows        = 1_000_000 // in all throughputs together
	MaxDecisions   = 200_000   // operations in a calculation
	// MaxProbabilities is the maximum number of distinct probabilities of an operation in one
	// interval.
	MaxProbabilities = 10
	// MinProbability is the minimum accepted probability of observed traces. With a lower one, a
	// trace would stand for an implausible number of traces, and calculations could overflow.
	MinProbability = 1e-12
	// MaxRecent is the maximum number of previous probabilities that are kept for an operation.
	MaxRecent = 16
	// MaxName is the maximum length of names of tenants, services and operations, in bytes. Longer
	// ones are not observed.
	MaxName = 1 << 10
)

// Throughput holds the counts of one collector for the traces that began in an interval.
type Throughput struct {
	By string `json:"by,omitempty"` // name of the collector
	// Last says that the collector was stopped after this interval. A collector that stops
	// reporting without it has crashed, and the counts of its last interval are lost.
	Last   bool            `json:"last,omitempty"`
	Until  time.Time       `json:"until"` // end of the interval
	Length time.Duration   `json:"length"`
	Rows   []ThroughputRow `json:"rows,omitempty"` // one for each operation
}

// OperationKey identifies a root operation.
type OperationKey struct {
	Tenant    string `json:"tenant,omitempty"`
	Service   string `json:"service"`
	Operation string `json:"operation"`
}

// ThroughputRow holds the counts of one operation.
type ThroughputRow struct {
	OperationKey
	// Counts has the number of traces by sampling probability, at most MaxProbabilities elements.
	Counts []ProbabilityCount `json:"seen,omitempty"`
	// ByLowerBound is the number of traces that were sampled only because of the lower bound of the
	// strategy.
	ByLowerBound int64 `json:"bounded,omitempty"`
}

// ProbabilityCount is the number of traces that were sampled with a probability. Count is 0 if
// clients reported the probability, but no trace was sampled because of it.
type ProbabilityCount struct {
	Probability float64 `json:"p"`
	Count       int64   `json:"n"`
}

// Calculation is the result of one calculation of adaptive sampling.
type Calculation struct {
	By        string     `json:"by"` // name of the collector
	At        time.Time  `json:"at"` // round
	Decisions []Decision `json:"decisions,omitempty"`
}

// Decision is the probability of an operation, with the data that it was calculated from.
type Decision struct {
	OperationKey
	Probability float64 `json:"probability"`
	// Before is the probability before this calculation.
	Before float64 `json:"before"`
	// QPS is the estimated number of traces per second that Before would sample.
	QPS float64 `json:"qps"`
	// Samples is the number of sampled traces that the probability was calculated from.
	Samples float64 `json:"samples"`
	// Reason describes why the operation has this probability.
	Reason string `json:"reason"`
	// Changed is when Probability last changed.
	Changed time.Time `json:"changed"`
	// Recent are previous probabilities, the latest first, at most MaxRecent.
	Recent []float64 `json:"recent,omitempty"`
}

// Sampler types of traces, as in the tag sampler.type of root spans.
const (
	SamplerProbabilistic = "probabilistic"
	SamplerLowerBound    = "lowerbound"
	SamplerRateLimiting  = "ratelimiting"
	SamplerConst         = "const"
)

// Observer receives the root spans of new traces. Adaptive sampling counts them.
type Observer interface {
	// Observe must not retain the strings of roots.
	Observe(tenant string, roots []Root)
}

// Root is the root span of a sampled trace.
type Root struct {
	Service, Operation string
	Sampler            string  // sampler type, for example SamplerProbabilistic
	Param              float64 // parameter of the sampler
}
