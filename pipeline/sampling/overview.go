package sampling

import (
	"context"
	"time"
)

// Lister is a [Provider] that lists its strategies. List does not count as a request of a client.
type Lister interface {
	// List returns the strategies of the tenant, at most limit services and as many operations.
	List(ctx context.Context, tenant string, limit int) (*Overview, error)
}

// MaxListed is the default and maximum number of services and of operations in an [Overview].
const MaxListed = 1000

// Overview lists the strategies of a provider.
type Overview struct {
	Component string `json:"component"` // id; set by the caller of the provider
	// Default is the strategy of services that are not listed. Its Sampler is empty if a collector
	// decides.
	Default ServiceStrategy `json:"default"`
	// Services are the services that have their own strategy or that clients have asked for, by
	// name.
	Services []ServiceStrategy `json:"services"`
	Omitted  int               `json:"omitted"` // services beyond the limit
	// Adaptive is set if sampling is adaptive.
	Adaptive *AdaptiveOverview `json:"adaptive,omitempty"`
}

// ServiceStrategy is the strategy of a service in an [Overview].
type ServiceStrategy struct {
	Service    string  `json:"service"`
	Sampler    Sampler `json:"sampler"`
	Operations int     `json:"operations"` // with their own strategies
	Origin     Origin  `json:"origin"`
	Clients    int     `json:"clients"` // that are remembered
	// Last is the latest request of a client; nil if none is remembered.
	Last *ServedRequest `json:"last,omitempty"`
}

// AdaptiveOverview is the latest calculation of adaptive sampling.
type AdaptiveOverview struct {
	Target     float64       `json:"targetSamplesPerSecond"`
	Interval   time.Duration `json:"interval"` // between calculations
	Calculated time.Time     `json:"calculated,omitzero"`
	By         string        `json:"by,omitempty"`
	Leader     string        `json:"leader,omitempty"`
	// Operations are those with most traces first.
	Operations []OperationHistory `json:"operations"`
	Omitted    int                `json:"omitted"`
}

// OperationHistory is the probability of an operation over time.
type OperationHistory struct {
	Service     string    `json:"service"`
	Operation   string    `json:"operation"`
	Probability float64   `json:"probability"`
	Rate        float64   `json:"rate"` // estimated new traces per second
	Reason      string    `json:"reason"`
	Changed     time.Time `json:"changed"`
	// Points are the calculations that this process has seen, the oldest first.
	Points []ProbabilityPoint `json:"points"`
}

// ProbabilityPoint is the result of one calculation for one operation.
type ProbabilityPoint struct {
	At          time.Time `json:"at"`
	Probability float64   `json:"probability"`
	Rate        float64   `json:"rate"`
}
