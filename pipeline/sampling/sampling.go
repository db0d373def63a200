// Package sampling is the contract between who decides which traces clients sample and who tells them: a component that implements
// [Provider] is named by the receivers and extensions that clients ask, through a pipeline.Ref.
//
// It also holds what all who tell have in common: the JSON forms of a [Strategy], the routes over HTTP ([HTTP]), and the answer to the
// question why a trace was not sampled ([Explainer]).
package sampling

import (
	"context"
	"time"
)

// Provider decides what services sample. Strategy is called by many goroutines at once. A service that is not known, or has no name, gets
// the strategy that holds for all others; an error says that the strategy cannot be found out at the moment.
type Provider interface {
	Strategy(ctx context.Context, q Question) (Answer, error)
}

// Question is what a client asks.
type Question struct {
	Tenant  string // "" is the default tenant
	Service string
	Asker   Asker // the zero Asker is not remembered
}

// Asker is a client as far as it shows.
type Asker struct {
	Address   string `json:"address"`             // host, without a port
	Client    string `json:"client,omitempty"`    // its User-Agent
	Transport string `json:"transport,omitempty"` // TransportHTTP, TransportLegacy or TransportGRPC
}

// The transports of questions.
const (
	TransportHTTP   = "http"
	TransportLegacy = "legacy" // HTTP, and the answer is Strategy.LegacyJSON
	TransportGRPC   = "grpc"
)

// Answer is a strategy and where it comes from. Whoever gets it must not change it.
type Answer struct {
	Strategy *Strategy
	Origin   Origin
}

// Origin says where a strategy comes from.
type Origin struct {
	// Source is the kind of source: `built-in`, `file`, `url`, `adaptive` or `remote`.
	Source string `json:"source"`
	// Place is where to change it: `strategies.json:12`, `http://host/strategies.json:12`, or the address of a collector. "" for what is
	// built in.
	Place string `json:"place,omitempty"`
	// Rule is why this strategy holds for the service, in words.
	Rule string `json:"rule"`
	// Since is when the strategy became what it is, as far as this process knows.
	Since time.Time `json:"since,omitzero"`
	// Problem says what is wrong with the source; "" is nothing. The strategy then is the last one that was good.
	Problem string `json:"problem,omitempty"`
}
