package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/errclass"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// okStatus is an error that claims to be a success.
type okStatus struct{}

func (okStatus) Error() string              { return "ok?" }
func (okStatus) GRPCStatus() *status.Status { return nil }

// hint is a gRPC status with RetryInfo.
func hint(code codes.Code, after time.Duration) error {
	return must(status.New(code, "next hop").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})).Err()
}

func TestStatusOfErrors(t *testing.T) {
	x := errors.New("x")
	f := func(err error, httpCode int, grpcCode codes.Code, after time.Duration) {
		t.Helper()
		// Wrapping does not change the class.
		for _, err := range []error{err, fmt.Errorf("storing: %w", err), errors.Join(fmt.Errorf("a: %w", fmt.Errorf("b: %w", err)))} {
			if code, wait := pipeline.HTTPStatus(err); code != httpCode || wait != after {
				t.Errorf("%v: HTTP %d, retry after %v", err, code, wait)
			}
			s := pipeline.GRPCStatus(err)
			text := err.Error()
			if next, ok := err.(interface{ GRPCStatus() *status.Status }); ok && next.GRPCStatus() != nil {
				text = next.GRPCStatus().Message() // without the prefix of the error text
			}
			if s.Code() != grpcCode || s.Message() != text {
				t.Errorf("%v: gRPC %v", err, s)
			}
			var info time.Duration
			for _, d := range s.Details() {
				info = d.(*errdetails.RetryInfo).GetRetryDelay().AsDuration()
			}
			if info != after || len(s.Details()) > 1 {
				t.Errorf("%v: retry info %v", err, s.Details())
			}
			if got := pipeline.IsPermanent(err); got != (after == 0) {
				t.Errorf("%v: permanent is %v", err, got)
			}
		}
	}
	const second = time.Second
	f(x, 503, codes.Unavailable, second)
	f(pipeline.Permanent(x), 400, codes.InvalidArgument, 0)
	f(pipeline.Overloaded(x, 5*second), 429, codes.ResourceExhausted, 5*second)
	f(pipeline.Overloaded(x, 0), 429, codes.ResourceExhausted, second)
	f(pipeline.Overloaded(x, -second), 429, codes.ResourceExhausted, second)
	f(pipeline.ErrStopping, 503, codes.Unavailable, second)
	f(context.Canceled, 503, codes.Canceled, second)
	f(context.DeadlineExceeded, 503, codes.DeadlineExceeded, second)
	f(&pipeline.Partial{Rejected: 2, Err: pipeline.Permanent(x)}, 400, codes.InvalidArgument, 0)
	f(&pipeline.Partial{Rejected: 2, Err: x}, 400, codes.InvalidArgument, 0)
	f(&pipeline.Partial{Rejected: 2, Err: pipeline.Overloaded(x, time.Second)}, 400, codes.InvalidArgument, 0)
	f(fmt.Errorf("next hop: %w", &pipeline.Partial{Rejected: 2}), 400, codes.InvalidArgument, 0)
	f(&otlpdata.LimitError{Limit: "nesting", Max: 64}, 400, codes.InvalidArgument, 0)
	f(&otlpdata.LimitError{Limit: "size", Max: 64, TooLarge: true}, 413, codes.ResourceExhausted, 0)
	f(pipeline.Permanent(&otlpdata.LimitError{Limit: "size", Max: 64, TooLarge: true}), 413, codes.ResourceExhausted, 0)

	// The outermost mark counts.
	f(pipeline.Permanent(pipeline.Overloaded(x, second)), 400, codes.InvalidArgument, 0)
	f(pipeline.Overloaded(pipeline.Permanent(x), 2*second), 429, codes.ResourceExhausted, 2*second)
	f(pipeline.Permanent(hint(codes.Unavailable, second)), 400, codes.InvalidArgument, 0)
	f(pipeline.Permanent(status.Error(codes.Unauthenticated, "x")), 401, codes.Unauthenticated, 0)
	f(pipeline.Overloaded(status.Error(codes.Internal, "x"), 3*second), 429, codes.ResourceExhausted, 3*second)

	// The status of a next hop is kept.
	f(status.Error(codes.InvalidArgument, "x"), 400, codes.InvalidArgument, 0)
	f(status.Error(codes.Unauthenticated, "x"), 401, codes.Unauthenticated, 0)
	f(status.Error(codes.PermissionDenied, "x"), 403, codes.PermissionDenied, 0)
	f(status.Error(codes.Unimplemented, "x"), 404, codes.Unimplemented, 0)
	f(status.Error(codes.ResourceExhausted, "x"), 429, codes.ResourceExhausted, 0)
	f(hint(codes.ResourceExhausted, 7*second), 429, codes.ResourceExhausted, 7*second)
	f(hint(codes.ResourceExhausted, 0), 429, codes.ResourceExhausted, second)
	f(hint(codes.ResourceExhausted, -second), 429, codes.ResourceExhausted, second)
	for _, c := range []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable,
		codes.DataLoss} {
		f(status.Error(c, "x"), 503, c, second)
		f(hint(c, 9*second), 503, c, 9*second)
	}
	for _, c := range []codes.Code{codes.Unknown, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.Internal} {
		f(status.Error(c, "x"), 500, c, 0)
		f(hint(c, second), 500, c, 0)
	}
	f(okStatus{}, 500, codes.Unknown, 0)
}

func TestIsAboutData(t *testing.T) {
	x := errors.New("x")
	for _, err := range []error{pipeline.Permanent(x), &otlpdata.LimitError{Limit: "nesting", Max: 64},
		&otlpdata.LimitError{Limit: "size", Max: 64, TooLarge: true}, status.Error(codes.InvalidArgument, "x"),
		status.Error(codes.ResourceExhausted, "x"), fmt.Errorf("%w in Consume", errclass.ErrInternal)} {
		if !pipeline.IsAboutData(err) {
			t.Errorf("%v is not about the data", err)
		}
	}
	for _, err := range []error{x, pipeline.Overloaded(x, 0), context.Canceled, hint(codes.ResourceExhausted, time.Second),
		status.Error(codes.Unknown, "x"), status.Error(codes.Internal, "x"), status.Error(codes.NotFound, "x"),
		status.Error(codes.FailedPrecondition, "x"), status.Error(codes.Unauthenticated, "x")} {
		if pipeline.IsAboutData(err) {
			t.Errorf("%v is about the data", err)
		}
	}
}

func TestNoError(t *testing.T) {
	if pipeline.Permanent(nil) != nil || pipeline.Overloaded(nil, time.Second) != nil {
		t.Error("marked nil is not nil")
	}
	if code, after := pipeline.HTTPStatus(nil); code != http.StatusOK || after != 0 {
		t.Errorf("HTTP %d, %v", code, after)
	}
	if s := pipeline.GRPCStatus(nil); s.Err() != nil {
		t.Errorf("gRPC %v", s)
	}
}

func TestErrorText(t *testing.T) {
	x := errors.New("x")
	for _, err := range []error{pipeline.Permanent(x), pipeline.Overloaded(x, time.Hour)} {
		if err.Error() != "x" || !errors.Is(err, x) {
			t.Errorf("%v", err)
		}
	}
	if p := (&pipeline.Partial{Rejected: 3, Err: x}); p.Error() != "3 items rejected: x" || !errors.Is(p, x) {
		t.Errorf("%v", p)
	}
	// Statuses must be valid UTF-8: others cannot be sent with details.
	s := pipeline.GRPCStatus(errors.New("bad \xff name"))
	if !utf8.ValidString(s.Message()) || len(s.Details()) != 1 {
		t.Errorf("%q, %v", s.Message(), s.Details())
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Clients do not learn where files are. The texts of errors still name them.
func TestClientText(t *testing.T) {
	full := &fs.PathError{Op: "open", Path: "/var/lib/tracing/disk/log/0001", Err: syscall.ENOSPC}
	moved := &os.LinkError{Op: "rename", Old: "data/disk/a.tmp", New: "data/disk/a", Err: syscall.EIO}
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("busy"), "busy"},
		{pipeline.Unavailable(fmt.Errorf("span store: %w", full), 0), "span store: open 0001: no space left on device"},
		{fmt.Errorf("%w: %w", errors.New("log failed"), errors.Join(full, moved)),
			"log failed: open 0001: no space left on device\nrename a.tmp a: input/output error"},
		{&fs.PathError{Op: "open", Path: "name", Err: syscall.EIO}, "open name: input/output error"},
	} {
		if got := pipeline.ClientText(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
		if got := pipeline.GRPCStatus(c.err).Message(); got != c.want {
			t.Errorf("gRPC, %v: %q", c.err, got)
		}
	}
}
