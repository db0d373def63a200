// Package errclass maps errors to classes. The class of an error decides whether the framework
// retries, and what a client is answered. All protocols share this mapping.
package errclass

import (
	"cmp"
	"context"
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// DefaultRetryAfter is the retry delay of errors that do not name one.
const DefaultRetryAfter = time.Second

// ErrInternal is wrapped by errors that stand for a recovered panic.
var ErrInternal = errors.New("internal error")

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

type overloadedError struct {
	err   error
	after time.Duration
}

func (e *overloadedError) Error() string { return e.err.Error() }
func (e *overloadedError) Unwrap() error { return e.err }

// Permanent marks err as permanent. It returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// Overloaded marks err as retryable after a delay; 0 stands for DefaultRetryAfter. It returns nil
// for nil.
func Overloaded(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	if after <= 0 {
		after = DefaultRetryAfter
	}
	return &overloadedError{err, after}
}

// Class is the class of an error.
type Class struct {
	Code       codes.Code
	RetryAfter time.Duration // delay before a retry; 0 if the error is permanent
	Requested  time.Duration // delay that the error itself asks for; 0 if RetryAfter is the default
	TooLarge   bool          // the request exceeds a size limit
}

// Permanent reports whether retrying cannot succeed.
func (c Class) Permanent() bool { return c.RetryAfter == 0 }

// Of returns the class of err, which must not be nil:
//
//   - permanent: InvalidArgument
//   - overloaded: ResourceExhausted with a delay
//   - too large: ResourceExhausted without a delay, because the same request fails again
//   - a gRPC status of a next hop: its own code, retryable as the OTLP specification says
//   - a recovered panic: Internal
//   - everything else: Unavailable with a delay
func Of(err error) Class {
	var (
		over  *overloadedError
		perm  *permanentError
		limit *otlpdata.LimitError
		grpcs interface{ GRPCStatus() *status.Status }
	)
	permanent, overloaded := errors.As(err, &perm), errors.As(err, &over)
	if permanent && overloaded { // the outermost mark counts
		var inner *overloadedError
		overloaded = !errors.As(perm.err, &inner)
	}
	switch {
	case errors.As(err, &limit):
		if limit.TooLarge {
			return Class{Code: codes.ResourceExhausted, TooLarge: true}
		}
		return Class{Code: codes.InvalidArgument}
	case overloaded:
		return Class{Code: codes.ResourceExhausted, RetryAfter: over.after, Requested: over.after}
	case errors.As(err, &grpcs):
		c := ofStatus(grpcs.GRPCStatus())
		if permanent && !c.Permanent() {
			return Class{Code: codes.InvalidArgument}
		}
		return c
	case permanent:
		return Class{Code: codes.InvalidArgument}
	case errors.Is(err, ErrInternal):
		return Class{Code: codes.Internal}
	case errors.Is(err, context.Canceled):
		return Class{Code: codes.Canceled, RetryAfter: DefaultRetryAfter}
	case errors.Is(err, context.DeadlineExceeded):
		return Class{Code: codes.DeadlineExceeded, RetryAfter: DefaultRetryAfter}
	}
	return Class{Code: codes.Unavailable, RetryAfter: DefaultRetryAfter}
}

func ofStatus(s *status.Status) Class {
	c := Class{Code: s.Code()}
	for _, d := range s.Details() {
		if ri, ok := d.(*errdetails.RetryInfo); ok {
			c.RetryAfter = cmp.Or(max(0, ri.GetRetryDelay().AsDuration()), DefaultRetryAfter)
			c.Requested = c.RetryAfter
		}
	}
	switch s.Code() {
	case codes.OK: // an error with this status must not be answered as a success
		return Class{Code: codes.Unknown}
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		if c.RetryAfter == 0 {
			c.RetryAfter = DefaultRetryAfter
		}
	case codes.ResourceExhausted: // retryable only with a delay
	default:
		c.RetryAfter = 0
	}
	return c
}
