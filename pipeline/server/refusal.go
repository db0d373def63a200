package server

import (
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Reasons of refused requests, as the metric tells them. Handlers add their own for what only they can see.
const (
	ReasonTooLarge    = "too_large"   // over the size limit, before or after decompression
	ReasonOverBudget  = "over_budget" // service.limits.inflight is used up
	ReasonEncoding    = "encoding"    // unknown compression, or broken compressed data
	ReasonIncomplete  = "incomplete"  // the client stopped sending, or was too slow
	ReasonProtocol    = "protocol"    // gRPC refused the call itself: unknown compression or method, or cancelled at once
	ReasonStopping    = "stopping"    // over TCP and UDP: sent when the process shut down, and not looked at any more
	ReasonQueueFull   = "queue_full"  // over UDP: nobody had the time
	ReasonEmpty       = "empty"       // over UDP: a datagram without content
	ReasonPanic       = "panic"       // over UDP: the handler panicked, which is a bug
	ReasonUndecodable = "undecodable" // not a message of the protocol; counted by handlers
)

// Refusal is the error of a request that could not be read. [pipeline.HTTPStatus] and [pipeline.GRPCStatus] know the right answer to it.
type Refusal struct {
	Reason string
	err    error
}

// Error says what is wrong with the request.
func (r *Refusal) Error() string { return r.err.Error() }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.err }

// refuse marks err with a reason, unless it has one already.
func refuse(reason string, err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return &Refusal{Reason: reason, err: err}
}

// bodyTooLarge is worded as clients of OTLP receivers know it, and unwraps to the limit so that it is answered as one.
type bodyTooLarge struct{ max int64 }

func (e *bodyTooLarge) Error() string { return "http: request body too large" }

func (e *bodyTooLarge) Unwrap() error {
	return &otlpdata.LimitError{Limit: "request body in bytes", Max: int(e.max), TooLarge: true}
}

func tooLarge(max int64) *Refusal { return refuse(ReasonTooLarge, &bodyTooLarge{max}) }

// messageTooLarge names the key to change, and unwraps to the limit so that it is answered as one.
type messageTooLarge struct{ max int }

func (e *messageTooLarge) Error() string {
	return fmt.Sprintf("the message is longer than max_message_size, which is %d bytes", e.max)
}

func (e *messageTooLarge) Unwrap() error {
	return &otlpdata.LimitError{Limit: "message in bytes", Max: e.max, TooLarge: true}
}

// badEncoding is permanent: the same bytes will not decode later.
func badEncoding(err error) *Refusal { return refuse(ReasonEncoding, pipeline.Permanent(err)) }

// capToBudget lowers a size limit to the budget: a request that can never be admitted is too large, not one to send again.
func capToBudget(limit int64, b *pipeline.Budget) int64 {
	if b.Limit() > 0 {
		return min(limit, b.Limit())
	}
	return limit
}
