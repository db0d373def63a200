package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Reasons of refused requests: values of the label reason of tracing_server_refused_requests_total.
// Handlers may add their own.
const (
	ReasonTooLarge        = "too_large"        // larger than the limit, before or after decompression
	ReasonOverBudget      = "over_budget"      // service.limits.inflight is exhausted
	ReasonEncoding        = "encoding"         // unknown compression or corrupt compressed data
	ReasonIncomplete      = "incomplete"       // the client stopped sending or was too slow
	ReasonProtocol        = "protocol"         // refused by gRPC, or canceled before the handler ran
	ReasonStopping        = "stopping"         // UDP: received during shutdown and not processed
	ReasonUndecodable     = "undecodable"      // not a message of the protocol
	ReasonUnauthenticated = "unauthenticated"  // missing or invalid credentials
	ReasonPasswordDelay   = "password_delay"   // too many wrong passwords from the client address
	ReasonPasswordLimit   = "password_limit"   // too many passwords to compare
	ReasonTenant          = "tenant"           // missing or unknown tenant
	ReasonHost            = "host"             // the header Host names a host that is not allowed
	ReasonCrossOrigin     = "cross_origin"     // sent by a web page of another origin
	ReasonPrivileged      = "privileged"       // needs credentials, and the listener has none
	ReasonHTTPOnGRPC      = "http_on_grpc"     // HTTP/1.1 on a gRPC port
	ReasonGRPCOnHTTP      = "grpc_on_http"     // HTTP/2 on an HTTP port
	ReasonTLSOnPlaintext  = "tls_on_plaintext" // TLS on a port without TLS
	ReasonPlaintextOnTLS  = "plaintext_on_tls" // HTTP or gRPC without TLS on a port with TLS
)

// ReasonOf returns the reason for refusing a request that was read but not accepted, for
// CountRefused.
func ReasonOf(err error) string {
	var refusal *Refusal
	var limit *otlpdata.LimitError
	switch {
	case errors.As(err, &refusal):
		return refusal.Reason
	case errors.Is(err, pipeline.ErrOverBudget):
		return ReasonOverBudget
	case errors.As(err, &limit) && limit.TooLarge:
		return ReasonTooLarge
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ReasonIncomplete // the client no longer waits for the response
	}
	return ReasonUndecodable
}

// ErrorStatus returns the HTTP status code for an error, see [pipeline.HTTPStatus], and sets the
// header Retry-After, in whole seconds, if the client should retry.
func ErrorStatus(h http.Header, err error) int {
	code, after := pipeline.HTTPStatus(err)
	if after > 0 {
		seconds := (after + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	return code
}

// Refusal is the error of a request that could not be read. [pipeline.HTTPStatus] and
// [pipeline.GRPCStatus] return the matching status.
type Refusal struct {
	Reason string
	err    error
}

// Error describes what is wrong with the request.
func (r *Refusal) Error() string { return r.err.Error() }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.err }

// refuse adds a reason to err unless it already has one.
func refuse(reason string, err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return &Refusal{Reason: reason, err: err}
}

// bodyTooLarge has the text that clients of OTLP receivers expect. It unwraps to a limit error,
// which determines its status.
type bodyTooLarge struct{ max int64 }

func (e *bodyTooLarge) Error() string { return "http: request body too large" }

func (e *bodyTooLarge) Unwrap() error {
	return &otlpdata.LimitError{Limit: "request body in bytes", Max: int(e.max), TooLarge: true}
}

func tooLarge(max int64) *Refusal { return refuse(ReasonTooLarge, &bodyTooLarge{max}) }

// badEncoding returns a permanent error: retrying the same bytes cannot succeed.
func badEncoding(err error) *Refusal { return refuse(ReasonEncoding, pipeline.Permanent(err)) }

// capToBudget lowers a size limit to the budget: a request that can never be admitted is too large
// and must not be retried.
func capToBudget(limit int64, b *pipeline.Budget) int64 {
	if b.Limit() > 0 {
		return min(limit, b.Limit())
	}
	return limit
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// unexpectedEOF replaces io.EOF by io.ErrUnexpectedEOF, for use where more data was expected.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
