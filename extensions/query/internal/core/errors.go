package core

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.uber.org/zap"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Errors of queries.
var (
	ErrTraceNotFound  = errors.New("trace not found")
	ErrSpanNotFound   = errors.New("trace has no such span")
	ErrTraceDamaged   = errors.New("trace is not in the part of the store that can be read")
	ErrNoArchive      = errors.New("archive span storage was not configured")
	ErrNoDependencies = errors.New("store does not support service dependencies")

	// ErrBusy is matched by the errors of requests that were refused because there are too many
	// queries.
	ErrBusy = errors.New("too many concurrent queries")

	// ErrUndelivered is matched by errors of writing a response. There is no client left to report
	// them to.
	ErrUndelivered = errors.New("client disconnected")
)

// IsBusy reports whether other queries caused err by exhausting a limit: the number or the memory
// of queries.
func IsBusy(err error) bool {
	return errors.Is(err, ErrBusy) || errors.Is(err, pipeline.ErrQueryMemory)
}

// CanEnd reports whether a response that already contains traces is completed with a warning when
// err occurs, instead of being replaced by the error. This is the case after a timeout and when
// memory is exhausted, but not when the store fails.
func CanEnd(found int, err error) bool {
	return found > 0 && (errors.Is(err, context.DeadlineExceeded) || IsBusy(err))
}

// IsInvalid reports whether a store in another process refused the query as invalid.
func IsInvalid(err error) bool {
	code, _ := pipeline.HTTPStatus(err)
	return code == http.StatusBadRequest
}

// Undelivered marks an error of writing to a client, so that it matches ErrUndelivered. It returns
// nil for nil.
func Undelivered(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUndelivered, err)
}

// LogUndelivered logs that a response did not reach its client, unless err is nil.
func (b *Backend) LogUndelivered(err error) {
	if err != nil {
		b.opts.Logger.Debug("response not delivered", zap.Error(err))
	}
}

// HTTPError returns the status code and the text for an error. It sets Retry-After in header for
// overloads and unreachable stores, and logs all other errors except timeouts.
func (b *Backend) HTTPError(header http.Header, err error) (status int, text string) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, b.TimeoutText(err)
	case IsBusy(err), pipeline.IsTemporary(err): // an unreachable store reports this
		return server.ErrorStatus(header, err), pipeline.ClientText(err)
	case IsInvalid(err):
		return http.StatusBadRequest, pipeline.ClientText(err)
	case errors.Is(err, tracestore.ErrUnsupported):
		return http.StatusNotImplemented, pipeline.ClientText(err)
	case errors.Is(err, tracestore.ErrAnswerTooLarge):
		return http.StatusBadGateway, pipeline.ClientText(err)
	case errors.Is(err, ErrTraceDamaged): // logged by the store
		return http.StatusNotFound, pipeline.ClientText(err)
	}
	b.opts.Logger.Error("HTTP handler, Internal Server Error", zap.Error(err))
	return http.StatusInternalServerError, pipeline.ClientText(err)
}

// TimeoutText returns the message for a query that ended with context.DeadlineExceeded because it
// exceeded Limits.Timeout, or a limit of a store in another process, whose error has a gRPC status.
func (b *Backend) TimeoutText(err error) string {
	if _, remote := status.FromError(err); remote {
		return err.Error()
	}
	if errors.Is(err, tracestore.ErrPatternTime) {
		return fmt.Sprintf("regular expressions took longer than max_pattern_time (%s); simplify them or narrow the query",
			b.opts.Limits.PatternTime)
	}
	return fmt.Sprintf("the store did not finish within query_timeout (%s); narrow the query", b.opts.Limits.Timeout)
}

// Abort closes the connection by a panic with http.ErrAbortHandler. It is for errors after a part
// of the response was sent: the client must not mistake this part for the whole response.
func (b *Backend) Abort(err error) {
	b.HTTPError(http.Header{}, err)
	panic(http.ErrAbortHandler)
}
