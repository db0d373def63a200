package otelcol

import (
	"errors"
	"net/http"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline"
)

// classified returns an error of a component with a class of this program. Errors that come from
// later components of the pipeline already have one.
func classified(err error) error {
	var partial *pipeline.Partial
	var failed consumererror.Traces
	var remote *consumererror.Error
	switch {
	case err == nil || errors.As(err, &partial) || pipeline.IsTemporary(err):
		return err
	case !consumererror.IsPermanent(err) && errors.As(err, &remote):
		return classifiedRemote(remote, err)
	case !consumererror.IsPermanent(err):
		return err
	case errors.As(err, &failed) && failed.Data().SpanCount() > 0:
		return &pipeline.Partial{Rejected: failed.Data().SpanCount(), Err: err}
	}
	return pipeline.Permanent(err)
}

// classifiedRemote returns err with the class that corresponds to a next hop's response.
func classifiedRemote(remote *consumererror.Error, err error) error {
	switch {
	case consumererror.ToHTTPStatus(remote) == http.StatusTooManyRequests,
		consumererror.ToGRPCStatus(remote).Code() == codes.ResourceExhausted && remote.IsRetryable():
		return pipeline.Overloaded(err, 0)
	case remote.IsRetryable():
		return pipeline.Unavailable(err, 0)
	}
	return pipeline.Permanent(err)
}
