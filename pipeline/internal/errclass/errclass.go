// Package errclass maps errors to classes. The class of an error determines whether the framework
// retries, and the response to the client. All protocols share this mapping.
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

// DefaultRetryAfter is the retry delay of errors without their own.
const DefaultRetryAfter = time.Second

// ErrInternal is wrapped by errors that stand for a recovered panic.
var ErrInternal = errors.New("internal error")

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// delayedError marks an error as retryable after a delay.
type delayedError struct {
	err   error
	code  codes.Code // ResourceExhausted or Unavailable
	after time.Duration
}

func (e *delayedError) Error() string { return e.err.Error() }
func (e *delayedError) Unwrap() error { return e.err }

// Permanent marks err as permanent. It returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// Overloaded marks err as retryable after a delay; 0 means DefaultRetryAfter. It returns nil for
// nil.
func Overloaded(err error, after time.Duration) error {
	return delayed(err, codes.ResourceExhausted, after)
}

// Unavailable marks err as a temporary outage, with a delay before a retry; 0 means
// DefaultRetryAfter. It returns nil for nil.
func Unavailable(err error, after time.Duration) error {
	return delayed(err, codes.Unavailable, after)
}

func delayed(err error, code codes.Code, after time.Duration) error {
	if err == nil {
		return nil
	}
	if after <= 0 {
		after = DefaultRetryAfter
	}
	return &delayedError{err, code, after}
}

// IsDelayed reports whether err is marked with Overloaded or Unavailable, unless it is marked as
// permanent further out.
func IsDelayed(err error) bool {
	var d *delayedError
	return errors.As(err, &d) && !Of(err).Permanent()
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

// AboutData reports whether err, which must not be nil, is permanent and caused by the data: other
// data may succeed. A panic in a component of this process counts as caused by the data, because it
// usually is. Errors caused by the sender or by a bug of the next hop do not.
func AboutData(err error) bool {
	switch c := Of(err); c.Code {
	case codes.InvalidArgument:
		return true
	case codes.ResourceExhausted:
		return c.Permanent()
	case codes.Internal:
		return errors.Is(err, ErrInternal)
	}
	return false
}

// Of returns the class of err, which must not be nil:
//
//   - permanent: InvalidArgument
//   - overloaded: ResourceExhausted with a delay
//   - unavailable: Unavailable with a delay
//   - too large: ResourceExhausted without a delay, because the same request fails again
//   - a gRPC status of a next hop: its own code, retryable as the OTLP specification says
//   - a recovered panic: Internal
//   - everything else: Unavailable with a delay
func Of(err error) Class {
	var (
		later *delayedError
		perm  *permanentError
		limit *otlpdata.LimitError
		grpcs interface{ GRPCStatus() *status.Status }
	)
	permanent, delayed := errors.As(err, &perm), errors.As(err, &later)
	if permanent && delayed { // the outermost mark counts
		var inner *delayedError
		delayed = !errors.As(perm.err, &inner)
	}
	switch {
	case errors.As(err, &limit):
		if limit.TooLarge {
			return Class{Code: codes.ResourceExhausted, TooLarge: true}
		}
		return Class{Code: codes.InvalidArgument}
	case delayed:
		return Class{Code: later.code, RetryAfter: later.after, Requested: later.after}
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
