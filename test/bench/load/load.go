// Package load sends the requests of the data set to a server over OTLP/gRPC, with a given number
// of connections and concurrent requests, and counts the outcome of every span. The end-to-end
// tests and `make bench` use it.
package load

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/test/bench"
)

// Options are the options of [Run]. The default for a zero value is in parentheses.
type Options struct {
	// Target is the server's host:port.
	Target string
	// Connections is the number of connections (1).
	Connections int
	// InFlight is the number of concurrent requests on each connection (1).
	InFlight int
	// Headers are sent with each request, for example the header with the tenant.
	Headers map[string]string
	// Timeout is the maximum duration of one attempt (30 s).
	Timeout time.Duration
	// Retry is the time after the first failure during which a request is retried (0: no retries).
	Retry time.Duration
	// Dial are options in addition to those for a connection without TLS.
	Dial []grpc.DialOption
	// Acked, if set, is called with every fully acknowledged request. Calls are
	// concurrent.
	Acked func(bench.Request)
}

// Result is the outcome of the requests. Spans is the sum of Acked, Rejected and Refused.
type Result struct {
	Requests int
	Bytes    int64
	Spans    int
	Acked    int                // acknowledged spans
	Rejected int                // spans rejected in answers with partial success
	Refused  int                // spans of requests whose last attempt failed
	Failures map[codes.Code]int // failed attempts by status code
	Retries  int                // attempts after the first one
	Elapsed  time.Duration
}

const (
	exportMethod   = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
	defaultTimeout = 30 * time.Second
	firstDelay     = 50 * time.Millisecond // doubled after each attempt, unless the server specifies a delay
	maxDelay       = 5 * time.Second
)

// Run sends all requests and returns after the last response. When ctx ends, Run sends no more
// requests, requests in flight fail, and Run returns the error of ctx. Answers with errors are
// counted; Run does not return them.
func Run(ctx context.Context, o Options, requests iter.Seq[bench.Request]) (Result, error) {
	o.Connections, o.InFlight = max(1, o.Connections), max(1, o.InFlight)
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	conns, err := dial(o)
	if err != nil {
		return Result{}, err
	}
	s := &sender{Options: o, result: Result{Failures: map[codes.Code]int{}}}
	start := time.Now()
	queue := make(chan bench.Request)
	var wg sync.WaitGroup
	for _, c := range conns {
		for range o.InFlight {
			wg.Go(func() {
				for r := range queue {
					s.send(ctx, c, r)
				}
			})
		}
	}
	feed(ctx, queue, requests)
	wg.Wait()
	s.result.Elapsed = time.Since(start)
	return s.result, errors.Join(ctx.Err(), closeAll(conns))
}

func feed(ctx context.Context, queue chan<- bench.Request, requests iter.Seq[bench.Request]) {
	defer close(queue)
	for r := range requests {
		select {
		case queue <- r:
		case <-ctx.Done():
			return
		}
	}
}

func dial(o Options) ([]*grpc.ClientConn, error) {
	options := append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, o.Dial...)
	var conns []*grpc.ClientConn
	for range o.Connections {
		c, err := grpc.NewClient(o.Target, options...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connecting to %s: %w", o.Target, err), closeAll(conns))
		}
		conns = append(conns, c)
	}
	return conns, nil
}

func closeAll(conns []*grpc.ClientConn) error {
	var errs []error
	for _, c := range conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

type sender struct {
	Options
	mu     sync.Mutex
	result Result
}

// send sends a request until it has a final answer, and counts the outcome.
func (s *sender) send(ctx context.Context, c *grpc.ClientConn, r bench.Request) {
	var until time.Time
	rejected, err := s.attempt(ctx, c, r)
	for delay := firstDelay; err != nil; delay = min(2*delay, maxDelay) {
		s.failed(err)
		if until.IsZero() {
			until = time.Now().Add(s.Retry)
		}
		wait, ok := retryDelay(err, delay)
		if !ok || time.Now().Add(wait).After(until) || !sleep(ctx, wait) {
			break
		}
		s.retried()
		rejected, err = s.attempt(ctx, c, r)
	}
	s.finished(r, rejected, err)
	if err == nil && rejected == 0 && s.Acked != nil {
		s.Acked(r)
	}
}

// attempt sends a request once and returns how many of its spans the server rejected.
func (s *sender) attempt(ctx context.Context, c *grpc.ClientConn, r bench.Request) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	ctx = metadata.NewOutgoingContext(ctx, metadata.New(s.Headers))
	var answer []byte
	if err := c.Invoke(ctx, exportMethod, r.Body, &answer, grpc.ForceCodecV2(rawCodec{})); err != nil {
		return 0, err
	}
	response := ptraceotlp.NewExportResponse()
	if err := response.UnmarshalProto(answer); err != nil {
		return 0, status.Errorf(codes.Internal, "reading the answer: %v", err)
	}
	return int(response.PartialSuccess().RejectedSpans()), nil
}

// retryDelay reports whether the OTLP specification allows a retry after err, and returns the time
// to wait before it: the given delay, or the delay of the server.
func retryDelay(err error, delay time.Duration) (time.Duration, bool) {
	st := status.Convert(err)
	fromServer := false
	for _, d := range st.Details() {
		if ri, ok := d.(*errdetails.RetryInfo); ok {
			delay, fromServer = ri.GetRetryDelay().AsDuration(), true
		}
	}
	switch st.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		return delay, true
	case codes.ResourceExhausted:
		return delay, fromServer
	}
	return 0, false
}

// sleep waits, and reports false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *sender) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.Failures[status.Code(err)]++
}

func (s *sender) retried() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.Retries++
}

func (s *sender) finished(r bench.Request, rejected int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.Requests++
	s.result.Bytes += int64(len(r.Body))
	s.result.Spans += r.Spans
	if err != nil {
		s.result.Refused += r.Spans
		return
	}
	s.result.Rejected += rejected
	s.result.Acked += r.Spans - rejected
}
