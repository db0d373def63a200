package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tracing-backend/tracing/pipeline/internal/errclass"
)

// ErrOverBudget is wrapped by the errors of a [Budget] for requests in flight.
var ErrOverBudget = errors.New("too many bytes in flight")

// ErrQueryMemory is wrapped by the errors of a [Budget] for queries.
var ErrQueryMemory = errors.New("running queries use all of their memory")

// ErrHeldMemory is wrapped by the errors of a [Budget] for spans that processors hold.
var ErrHeldMemory = errors.New("processors hold too many spans")

// ErrStopping is the error of work that is refused because the process is shutting down.
var ErrStopping = errors.New("shutting down")

// Permanent marks err as an error in the data itself: resending the same data cannot succeed, so it
// is not retried. Permanent(nil) is nil.
func Permanent(err error) error { return errclass.Permanent(err) }

// Overloaded marks err as temporary: the data may be resent after the given delay; 0 means one
// second. Overloaded(nil, after) is nil.
func Overloaded(err error, after time.Duration) error { return errclass.Overloaded(err, after) }

// Unavailable marks err as temporary: something that the operation needs is unreachable at the
// moment. The operation may be retried after the given delay; 0 means one second. Unavailable(nil,
// after) is nil.
func Unavailable(err error, after time.Duration) error { return errclass.Unavailable(err, after) }

// IsTemporary reports whether err is marked with [Overloaded] or [Unavailable]. The status of such
// an error says when to retry the operation, for reads as well as writes.
func IsTemporary(err error) bool { return errclass.IsDelayed(err) }

// IsPermanent reports whether retrying is useless: err is marked with [Permanent], or is a limit
// error or a gRPC status with that meaning. err must not be nil.
func IsPermanent(err error) bool { return errclass.Of(err).Permanent() }

// IsAboutData reports whether err is permanent and caused by the data itself, so that other data
// may be accepted: it is marked with [Permanent], is a limit error or a gRPC status with that
// meaning, or a component of this process panicked. Wrong credentials and bugs of the next hop are
// not about the data. err must not be nil.
func IsAboutData(err error) bool { return errclass.AboutData(err) }

// Partial is the error of a batch in which some spans were rejected permanently and the others were
// accepted. Receivers respond with the partial success of their protocol. It is permanent, because
// resending the batch would duplicate the accepted spans: [HTTPStatus] returns 400, for protocols
// that have no partial success and whose clients report errors.
type Partial struct {
	Rejected int // number of spans or log records
	Err      error
}

// Error returns the number of rejected spans and the reason.
func (e *Partial) Error() string { return fmt.Sprintf("%d items rejected: %v", e.Rejected, e.Err) }

// Unwrap returns the reason, marked as permanent.
func (e *Partial) Unwrap() error { return Permanent(cmp.Or(e.Err, errRejected)) }

var errRejected = errors.New("items rejected")

// HTTPStatus returns the HTTP status code for an error of Consume, and the value of the Retry-After
// header; 0 means no header.
func HTTPStatus(err error) (code int, retryAfter time.Duration) {
	if err == nil {
		return http.StatusOK, 0
	}
	c := errclass.Of(err)
	switch c.Code {
	case codes.InvalidArgument:
		return http.StatusBadRequest, 0
	case codes.Unauthenticated:
		return http.StatusUnauthorized, 0
	case codes.PermissionDenied:
		return http.StatusForbidden, 0
	case codes.Unimplemented:
		return http.StatusNotFound, 0
	case codes.ResourceExhausted:
		if c.TooLarge {
			return http.StatusRequestEntityTooLarge, 0
		}
		return http.StatusTooManyRequests, c.RetryAfter
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		return http.StatusServiceUnavailable, c.RetryAfter
	}
	return http.StatusInternalServerError, 0
}

// GRPCStatus returns the gRPC status for an error of Consume. Retryable errors have a RetryInfo;
// without it, OTLP clients drop spans that are refused with ResourceExhausted.
func GRPCStatus(err error) *status.Status {
	if err == nil {
		return nil
	}
	c := errclass.Of(err)
	s := status.New(c.Code, strings.ToValidUTF8(clientMessage(err), "\uFFFD"))
	if c.RetryAfter == 0 {
		return s
	}
	if d, derr := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(c.RetryAfter)}); derr == nil {
		return d
	}
	return s
}

// clientMessage returns the text for the client: the unchanged message of a gRPC status from the
// next hop, or else [ClientText] of the error.
func clientMessage(err error) string {
	if s, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return cmp.Or(s.GRPCStatus().Message(), ClientText(err))
	}
	return ClientText(err)
}

// ClientText returns the text of an error for a client, without the folders of files, which clients
// should not see. Log the error itself for operators.
func ClientText(err error) string {
	text := err.Error()
	for _, path := range filePaths(err) {
		text = strings.ReplaceAll(text, path, filepath.Base(path))
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// filePaths returns the paths in the file system errors that err wraps.
func filePaths(err error) (paths []string) {
	switch e := err.(type) {
	case *fs.PathError:
		paths = append(paths, e.Path)
	case *os.LinkError:
		paths = append(paths, e.Old, e.New)
	case interface{ Unwrap() []error }:
		for _, wrapped := range e.Unwrap() {
			paths = append(paths, filePaths(wrapped)...)
		}
	}
	if wrapped := errors.Unwrap(err); wrapped != nil {
		paths = append(paths, filePaths(wrapped)...)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return filepath.Base(path) == path })
}
