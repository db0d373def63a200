package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// DefaultRetryAfter is the delay that clients are told when an error names none.
const DefaultRetryAfter = time.Second

// ErrOverBudget is wrapped by the errors of [Budget].
var ErrOverBudget = errors.New("too many bytes in flight")

// ErrStopping refuses work while the process shuts down.
var ErrStopping = errors.New("shutting down")

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

type overloadedError struct {
	err   error
	after time.Duration
}

func (e *overloadedError) Error() string { return e.err.Error() }
func (e *overloadedError) Unwrap() error { return e.err }

// Permanent marks an error of the data itself: sending it again cannot help, so nobody does. nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// Overloaded marks an error that passes: try again, but not before after (zero: [DefaultRetryAfter]). nil stays nil.
func Overloaded(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	if after <= 0 {
		after = DefaultRetryAfter
	}
	return &overloadedError{err, after}
}

// Partial is the error of a request of which a part was refused for good and the rest was taken. Only receivers read it, to answer the
// client with a partial success.
type Partial struct {
	Rejected int // spans
	Err      error
}

// Error tells how many spans were refused and why.
func (e *Partial) Error() string { return fmt.Sprintf("%d spans rejected: %v", e.Rejected, e.Err) }

// Unwrap returns the reason.
func (e *Partial) Unwrap() error { return e.Err }

// IsPermanent reports whether trying again is useless: the error was marked by [Permanent], or is a limit or a gRPC status that says so.
func IsPermanent(err error) bool { return classify(err).permanent() }

// class is what the status mapping knows about an error.
type class struct {
	code  codes.Code
	after time.Duration // > 0: retry, not before
	asked time.Duration // the part of after that the error itself asked for
	large bool          // the request exceeds a size limit
}

func (c class) permanent() bool { return c.after == 0 }

// classify is the one mapping for all protocols: permanent is InvalidArgument, overloaded ResourceExhausted with a delay, too large
// ResourceExhausted without one (clients must not send it again as it is), all else Unavailable with a delay. A gRPC status from a next
// hop keeps its code, and is retryable as the OTLP specification says.
func classify(err error) class {
	var (
		over  *overloadedError
		perm  *permanentError
		limit *otlpdata.LimitError
		grpcs interface{ GRPCStatus() *status.Status }
	)
	permanent, overloaded := errors.As(err, &perm), errors.As(err, &over)
	if permanent && overloaded { // the outer mark is the later word
		var inner *overloadedError
		overloaded = !errors.As(perm.err, &inner)
	}
	switch {
	case errors.As(err, &limit):
		if limit.TooLarge {
			return class{code: codes.ResourceExhausted, large: true}
		}
		return class{code: codes.InvalidArgument}
	case overloaded:
		return class{code: codes.ResourceExhausted, after: over.after, asked: over.after}
	case errors.As(err, &grpcs):
		c := classifyStatus(grpcs.GRPCStatus())
		if permanent && !c.permanent() {
			return class{code: codes.InvalidArgument}
		}
		return c
	case permanent:
		return class{code: codes.InvalidArgument}
	case errors.Is(err, errBug):
		return class{code: codes.Internal}
	case errors.Is(err, context.Canceled):
		return class{code: codes.Canceled, after: DefaultRetryAfter}
	case errors.Is(err, context.DeadlineExceeded):
		return class{code: codes.DeadlineExceeded, after: DefaultRetryAfter}
	}
	return class{code: codes.Unavailable, after: DefaultRetryAfter}
}

func classifyStatus(s *status.Status) class {
	c := class{code: s.Code()}
	for _, d := range s.Details() {
		if ri, ok := d.(*errdetails.RetryInfo); ok {
			c.after = cmp.Or(max(0, ri.GetRetryDelay().AsDuration()), DefaultRetryAfter)
			c.asked = c.after
		}
	}
	switch s.Code() {
	case codes.OK: // an error with this status must not be answered as a success
		return class{code: codes.Unknown}
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		if c.after == 0 {
			c.after = DefaultRetryAfter
		}
	case codes.ResourceExhausted: // retryable only with a delay
	default:
		c.after = 0
	}
	return c
}

// HTTPStatus returns the status code of an HTTP answer for an error of Consume, and the value of Retry-After (0: none is sent).
func HTTPStatus(err error) (code int, retryAfter time.Duration) {
	if err == nil {
		return http.StatusOK, 0
	}
	c := classify(err)
	switch c.code {
	case codes.InvalidArgument:
		return http.StatusBadRequest, 0
	case codes.Unauthenticated:
		return http.StatusUnauthorized, 0
	case codes.PermissionDenied:
		return http.StatusForbidden, 0
	case codes.Unimplemented:
		return http.StatusNotFound, 0
	case codes.ResourceExhausted:
		if c.large {
			return http.StatusRequestEntityTooLarge, 0
		}
		return http.StatusTooManyRequests, c.after
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		return http.StatusServiceUnavailable, c.after
	}
	return http.StatusInternalServerError, 0
}

// GRPCStatus returns the status of a gRPC answer for an error of Consume, with RetryInfo where trying again makes sense: without it,
// OTLP clients drop what was refused as ResourceExhausted.
func GRPCStatus(err error) *status.Status {
	if err == nil {
		return nil
	}
	c := classify(err)
	s := status.New(c.code, strings.ToValidUTF8(message(err), "\uFFFD"))
	if c.after == 0 {
		return s
	}
	if d, derr := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(c.after)}); derr == nil {
		return d
	}
	return s
}

// message returns what the client is told: the text of a next hop's status as that worded it, and of any other error the whole text.
func message(err error) string {
	if s, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return cmp.Or(s.GRPCStatus().Message(), err.Error())
	}
	return err.Error()
}
