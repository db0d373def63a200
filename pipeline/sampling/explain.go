package sampling

import (
	"context"
	"time"
)

// Explainer is a [Provider] that can say why a service samples as it does. Who asks for an explanation is not remembered
// as an asker.
type Explainer interface {
	Explain(ctx context.Context, tenant, service, operation string) (*Explanation, error)
}

// Explanation is all that is known of a service's sampling.
type Explanation struct {
	Service   string `json:"service"`
	Operation string `json:"operation,omitempty"`
	// Sampler is what decides about traces that begin with the operation.
	Sampler Sampler `json:"sampler"`
	// Origin is where that comes from: the line of the operation, if it has one.
	Origin Origin `json:"origin"`
	// Strategy is nil, and Sampler empty, where it cannot be found out at the moment; Origin.Problem says why.
	Strategy *Strategy `json:"strategy"`
	// Askers are the clients that asked for the service last, the latest first.
	Askers []Asked `json:"askers"`
	// Adaptive is what a strategy of adaptive sampling comes from.
	Adaptive *Adaptive `json:"adaptive,omitempty"`
	// Notes are sentences about what is easily overlooked.
	Notes []string `json:"notes,omitempty"`
}

// Asked is a question that was answered.
type Asked struct {
	Asker
	At time.Time `json:"at"`
	// Told is the strategy in a few words, or the error.
	Told string `json:"told"`
	// Failed: it was told an error, on which clients keep what they were told before, which is Kept; "" is nothing as far as is known.
	Failed bool   `json:"failed,omitempty"`
	Kept   string `json:"kept,omitempty"`
	// Current: what it was told is what it would be told now.
	Current bool `json:"current"`
}

// Adaptive is the latest calculation of adaptive sampling, as far as it is about a service.
type Adaptive struct {
	Target     float64   `json:"targetSamplesPerSecond"`
	Tolerance  float64   `json:"deltaTolerance"`
	Calculated time.Time `json:"calculated,omitzero"` // zero: never
	By         string    `json:"by,omitempty"`        // the collector that calculated
	// Leader is who is to calculate the next time, and Until how long it is without saying that it lives.
	Leader string    `json:"leader,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	// Operations are those of the service, or the one that was asked for.
	Operations []AdaptiveOperation `json:"operations"`
}

// AdaptiveOperation is a decision, and the intervals that it comes from.
type AdaptiveOperation struct {
	Decision
	// Intervals are what all collectors saw, the newest first; only where one operation was asked for.
	Intervals []AdaptiveInterval `json:"intervals,omitempty"`
}

// AdaptiveInterval is what was seen of an operation in an interval.
type AdaptiveInterval struct {
	Until time.Time `json:"until"`
	// Sampled is the number of traces per second that were sampled by a probability, and Begun an estimate of how many began.
	Sampled float64 `json:"sampledPerSecond"`
	Begun   float64 `json:"begunPerSecond"`
	// Weight is the share that the interval has in the calculation; 0 where it is too old, or the rate was another one.
	Weight  float64 `json:"weight"`
	Seen    []Seen  `json:"seen,omitempty"`
	Bounded int64   `json:"bounded,omitempty"`
}
