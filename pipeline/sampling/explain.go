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
	Origin   Origin    `json:"origin"`
	Strategy *Strategy `json:"strategy"`
	// Askers are the clients that asked for the service last, the latest first.
	Askers []Asked `json:"askers"`
	// Notes are sentences about what is easily overlooked.
	Notes []string `json:"notes,omitempty"`
}

// Asked is a question that was answered.
type Asked struct {
	Asker
	At time.Time `json:"at"`
	// Told is the strategy in a few words, or the error.
	Told string `json:"told"`
	// Current: what it was told is what it would be told now.
	Current bool `json:"current"`
}
