// Package sampling defines the interface between components that determine sampling strategies and
// components that serve them to clients. Receivers and extensions refer to a [Provider] through a
// pipeline.Ref.
//
// It also contains what all servers share: the JSON forms of a [Strategy], the HTTP handlers
// ([Handlers]), and explanations of sampling decisions ([Explainer]). Adaptive sampling uses a
// [Store] and receives root spans as an [Observer].
package sampling

import (
	"context"
	"time"
)

// Provider provides sampling strategies. Strategy must be safe for concurrent use. Unknown
// services, and the empty name, get the default strategy. An error means that the strategy is
// currently unavailable.
type Provider interface {
	Strategy(ctx context.Context, q Request) (Answer, error)
}

// Request is a strategy request of a client.
type Request struct {
	Tenant  string // "" is the default tenant
	Service string
	Client  Client // the zero Client is not recorded
}

// Client identifies a client.
type Client struct {
	Address   string `json:"address"`             // host, without a port
	UserAgent string `json:"client,omitempty"`    // User-Agent
	Transport string `json:"transport,omitempty"` // TransportHTTP, TransportLegacy or TransportGRPC
}

// Transports of requests.
const (
	TransportHTTP   = "http"
	TransportLegacy = "legacy" // HTTP with answers in the form of Strategy.LegacyJSON
	TransportGRPC   = "grpc"
)

// Answer is a strategy and its origin. Callers must not modify it.
type Answer struct {
	Strategy *Strategy
	Origin   Origin
}

// Origin describes where a strategy comes from.
type Origin struct {
	// Source is the kind of source: `built-in`, `file`, `url`, `adaptive` or `remote`.
	Source string `json:"source"`
	// Place is where the strategy can be changed: `strategies.json:12`,
	// `http://host/strategies.json:12`, or the address of a collector. It is empty for the built-in
	// strategy.
	Place string `json:"place,omitempty"`
	// Rule describes why the service has this strategy.
	Rule string `json:"rule"`
	// Since is when the strategy last changed, as far as this process knows.
	Since time.Time `json:"since,omitzero"`
	// Problem is the current error of the source, or empty. If set, the strategy is the last valid
	// one.
	Problem string `json:"problem,omitempty"`
}
