package sampling

import (
	"context"
	"time"
)

// Explainer is a [Provider] that can explain the strategy of a service. Explain does not count as a
// request of a client.
type Explainer interface {
	Explain(ctx context.Context, tenant, service, operation string) (*Explanation, error)
}

// Explanation describes the strategy of a service and its origin.
type Explanation struct {
	Service   string `json:"service"`
	Operation string `json:"operation,omitempty"`
	// Sampler is the sampler for traces that start with the operation.
	Sampler Sampler `json:"sampler"`
	// Origin is the origin of Sampler: the entry of the operation, if it has one.
	Origin Origin `json:"origin"`
	// Strategy is nil, and Sampler empty, if the strategy is currently not available;
	// Origin.Problem has the reason.
	Strategy *Strategy `json:"strategy"`
	// Clients are the recent clients of the service, the latest first.
	Clients []ServedRequest `json:"askers"`
	// Adaptive is the calculation behind the strategy if sampling is adaptive.
	Adaptive *Adaptive `json:"adaptive,omitempty"`
	// Notes are facts that are easy to overlook.
	Notes []string `json:"notes,omitempty"`
}

// ServedRequest is a strategy request that was served.
type ServedRequest struct {
	Client
	At time.Time `json:"at"`
	// Answer is a summary of the strategy, or the error.
	Answer string `json:"told"`
	// Failed says that the response was an error. Clients then keep the previous strategy, which is
	// in Previous if known.
	Failed   bool   `json:"failed,omitempty"`
	Previous string `json:"kept,omitempty"`
	// Current says that the client would get the same strategy now.
	Current bool `json:"current"`
}

// Adaptive is the part of the latest calculation that concerns a service.
type Adaptive struct {
	Target     float64   `json:"targetSamplesPerSecond"`
	Tolerance  float64   `json:"deltaTolerance"`
	Calculated time.Time `json:"calculated,omitzero"` // zero if there is no calculation
	By         string    `json:"by,omitempty"`        // the collector that calculated
	// Leader is the collector that holds the lease, and Until the end of the lease.
	Leader string    `json:"leader,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	// Operations are the operations of the service, or only the requested one.
	Operations []AdaptiveOperation `json:"operations"`
}

// AdaptiveOperation is a decision and the intervals behind it.
type AdaptiveOperation struct {
	Decision
	// Intervals hold the counts of all collectors, the newest first. They are set only if one
	// operation was requested.
	Intervals []AdaptiveInterval `json:"intervals,omitempty"`
}

// AdaptiveInterval holds the counts of an operation in an interval.
type AdaptiveInterval struct {
	Until time.Time `json:"until"`
	// Sampled is the number of traces per second that were sampled with a probability, and Begun is
	// the estimated number of new traces per second.
	Sampled float64 `json:"sampledPerSecond"`
	Begun   float64 `json:"begunPerSecond"`
	// Weight is the share of the interval in the calculation; 0 if it is too old, or had a
	// different rate.
	Weight       float64            `json:"weight"`
	Counts       []ProbabilityCount `json:"seen,omitempty"`
	ByLowerBound int64              `json:"bounded,omitempty"`
}
