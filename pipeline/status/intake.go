package status

import "time"

// Intake describes the spans that a process has received. Its counters start with the process and
// survive configuration reloads.
type Intake struct {
	Since     time.Time  `json:"since"`     // when the counters began
	Dropped   uint64     `json:"dropped"`   // acknowledged spans that a sending queue dropped
	Receivers []Receiver `json:"receivers"` // that run, sorted by component and transport
}

// Receiver describes the spans that a receiver has received over one transport.
type Receiver struct {
	Component string   `json:"component"` // id
	Transport string   `json:"transport"` // `grpc`, `http`, `udp` or `tcp`; "" if the receiver does not name it
	Addresses []string `json:"addresses"` // of the open listeners
	Received  uint64   `json:"received"`  // spans, including the refused ones
	// Refused is the number of spans whose sender got an error, or that arrived in datagrams and
	// were not stored.
	Refused uint64 `json:"refused"`
	// RefusedRequests is the number of requests and datagrams that were refused before their spans
	// were read, for example because they could not be decoded.
	RefusedRequests uint64   `json:"refusedRequests"`
	Refusal         *Refusal `json:"refusal,omitempty"` // the last one; nil if there was none
}

// Refusal is why and when spans or a request were refused.
type Refusal struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Listener is an open listener of a component.
type Listener struct {
	Transport string // `grpc`, `http`, `udp` or `tcp`
	Address   string
}
