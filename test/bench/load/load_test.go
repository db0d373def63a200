package load

import (
	"context"
	"errors"
	"iter"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tracing-backend/tracing/test/bench"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server calls answer for the n-th attempt, and counts the spans that it accepts.
type server struct {
	ptraceotlp.UnimplementedGRPCServer
	answer func(ctx context.Context, n int, resp ptraceotlp.ExportResponse) error

	mu       sync.Mutex
	attempts int
	spans    int
}

func (s *server) Export(ctx context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	s.mu.Lock()
	s.attempts++
	n := s.attempts
	s.mu.Unlock()
	resp := ptraceotlp.NewExportResponse()
	if s.answer != nil {
		if err := s.answer(ctx, n, resp); err != nil {
			return resp, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans += req.Traces().SpanCount()
	return resp, nil
}

// start serves on a free port until the test ends, and returns the address.
func start(t *testing.T, s *server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(g, s)
	done := make(chan error, 1)
	go func() { done <- g.Serve(l) }()
	t.Cleanup(func() {
		g.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func requests(spans, perRequest int) iter.Seq[bench.Request] {
	return bench.New(1, time.Unix(1_800_000_000, 0)).Requests(spans, perRequest)
}

// check checks what is true for every result.
func check(t *testing.T, r Result) {
	t.Helper()
	if r.Spans != r.Acked+r.Rejected+r.Refused {
		t.Errorf("the counts do not add up: %+v", r)
	}
}

func run(t *testing.T, o Options, requests iter.Seq[bench.Request]) Result {
	t.Helper()
	r, err := Run(context.Background(), o, requests)
	if err != nil {
		t.Fatal(err)
	}
	check(t, r)
	return r
}

func TestAllAcknowledged(t *testing.T) {
	s := &server{answer: func(ctx context.Context, _ int, _ ptraceotlp.ExportResponse) error {
		if md, _ := metadata.FromIncomingContext(ctx); !slices.Equal(md.Get("x-tenant"), []string{"acme"}) {
			return status.Error(codes.Unauthenticated, "no tenant")
		}
		return nil
	}}
	wantRequests, wantSpans, wantBytes := 0, 0, int64(0)
	for r := range requests(5000, 50) {
		wantRequests, wantSpans, wantBytes = wantRequests+1, wantSpans+r.Spans, wantBytes+int64(len(r.Body))
	}
	var mu sync.Mutex
	acked := 0
	r := run(t, Options{Target: start(t, s), Connections: 3, InFlight: 4, Headers: map[string]string{"x-tenant": "acme"},
		Acked: func(r bench.Request) {
			mu.Lock()
			defer mu.Unlock()
			acked += r.Spans
		}}, requests(5000, 50))
	if r.Requests != wantRequests || r.Spans != wantSpans || r.Bytes != wantBytes || r.Acked != wantSpans ||
		len(r.Failures) != 0 || r.Retries != 0 {
		t.Errorf("got %+v, want %d requests, %d spans, %d bytes", r, wantRequests, wantSpans, wantBytes)
	}
	if s.spans != wantSpans || acked != wantSpans || r.Elapsed <= 0 {
		t.Errorf("the server has %d spans, Acked was called with %d, want %d; elapsed %v", s.spans, acked, wantSpans, r.Elapsed)
	}
}

func TestRefused(t *testing.T) {
	s := &server{answer: func(_ context.Context, n int, _ ptraceotlp.ExportResponse) error {
		if n%2 == 0 {
			return status.Error(codes.InvalidArgument, "no")
		}
		return nil
	}}
	r := run(t, Options{Target: start(t, s), Retry: time.Hour}, requests(1000, 50))
	if r.Acked != s.spans || r.Refused == 0 || r.Failures[codes.InvalidArgument] != r.Requests/2 || r.Retries != 0 {
		t.Errorf("got %+v, the server has %d spans", r, s.spans)
	}
}

func TestPartialSuccess(t *testing.T) {
	s := &server{answer: func(_ context.Context, _ int, resp ptraceotlp.ExportResponse) error {
		resp.PartialSuccess().SetRejectedSpans(1)
		return nil
	}}
	acked := func(bench.Request) { t.Error("Acked was called for a partial success") }
	r := run(t, Options{Target: start(t, s), Acked: acked}, requests(200, 50))
	if r.Rejected != r.Requests || r.Refused != 0 {
		t.Errorf("got %+v", r)
	}
}

func retryable(t *testing.T, code codes.Code) error {
	t.Helper()
	st, err := status.New(code, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Microsecond)})
	if err != nil {
		t.Fatal(err)
	}
	return st.Err()
}

func TestRetries(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.ResourceExhausted} {
		s := &server{answer: func(_ context.Context, n int, _ ptraceotlp.ExportResponse) error {
			if n%3 != 0 {
				return retryable(t, code)
			}
			return nil
		}}
		r := run(t, Options{Target: start(t, s), Retry: time.Hour}, requests(200, 50))
		if r.Acked != r.Spans || s.spans != r.Spans || r.Retries != 2*r.Requests || r.Failures[code] != 2*r.Requests {
			t.Errorf("%v: got %+v, the server has %d spans", code, r, s.spans)
		}
	}
}

func TestNoRetries(t *testing.T) {
	for name, c := range map[string]struct {
		retry time.Duration
		err   error
	}{
		"retries disabled":            {0, retryable(t, codes.Unavailable)},
		"exhausted without delay":     {time.Hour, status.Error(codes.ResourceExhausted, "no")},
		"delay longer than the limit": {time.Microsecond, status.Error(codes.Unavailable, "no")},
		"permission denied":           {time.Hour, status.Error(codes.PermissionDenied, "no")},
		"internal error":              {time.Hour, status.Error(codes.Internal, "no")},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answer: func(context.Context, int, ptraceotlp.ExportResponse) error { return c.err }}
			r := run(t, Options{Target: start(t, s), Retry: c.retry}, requests(50, 50))
			if r.Refused != r.Spans || s.attempts != r.Requests || r.Failures[status.Code(c.err)] != r.Requests {
				t.Errorf("got %+v after %d attempts", r, s.attempts)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	s := &server{answer: func(ctx context.Context, _ int, _ ptraceotlp.ExportResponse) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	r := run(t, Options{Target: start(t, s), Timeout: time.Millisecond, InFlight: 100}, requests(50, 50))
	if r.Refused != r.Spans || r.Failures[codes.DeadlineExceeded] != r.Requests {
		t.Errorf("got %+v", r)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{answer: func(ctx context.Context, n int, _ ptraceotlp.ExportResponse) error {
		if n < 3 {
			return nil
		}
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}}
	r, err := Run(ctx, Options{Target: start(t, s), Retry: time.Hour}, requests(100_000_000, 10))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	check(t, r)
	if r.Requests < 3 || r.Acked != 20 || r.Refused == 0 {
		t.Errorf("got %+v", r)
	}
}

func TestBadTarget(t *testing.T) {
	if _, err := Run(context.Background(), Options{Target: "\x00://"}, requests(10, 10)); err == nil {
		t.Error("want an error")
	}
	r := run(t, Options{Target: "127.0.0.1:1"}, requests(50, 50))
	if r.Refused != r.Spans || r.Failures[codes.Unavailable] != r.Requests {
		t.Errorf("without a listener, got %+v", r)
	}
}
