package remotestorage

import (
	"context"
	"io"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/pipeline"
)

// TestTooManyReads checks the limit on concurrent reads.
func TestTooManyReads(t *testing.T) {
	reading, release := make(chan struct{}), make(chan struct{})
	s := &store{reading: func(context.Context) {
		close(reading)
		<-release
	}}
	conn := serve(t, s, func(c *Config) { c.MaxQueries = 1 })
	c := storage_v2.NewTraceReaderClient(conn)
	stream, err := c.FindTraces(t.Context(), &storage_v2.FindTracesRequest{Query: &storage_v2.TraceQueryParameters{}})
	if err != nil {
		t.Fatal(err)
	}
	<-reading
	if _, err := c.GetServices(t.Context(), &storage_v2.GetServicesRequest{}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("second read: error %v, want ResourceExhausted", err)
	}
	close(release)
	if _, err := stream.Recv(); err != io.EOF {
		t.Errorf("first read: %v", err)
	}
	if _, err := c.GetServices(t.Context(), &storage_v2.GetServicesRequest{}); err != nil {
		t.Errorf("read after the first ended: %v", err)
	}
}

// TestSlowClient checks that a client that does not receive its response occupies a slot only until
// the timeout.
func TestSlowClient(t *testing.T) {
	s := &store{}
	conn := serve(t, s, func(c *Config) { c.MaxQueries, c.QueryTimeout = 1, pipeline.Duration(200*time.Millisecond) })
	for range 20 {
		if _, err := coltracepb.NewTraceServiceClient(conn).Export(t.Context(), export(1, 2500)); err != nil {
			t.Fatal(err)
		}
	}
	c := storage_v2.NewTraceReaderClient(conn)
	slow, err := c.FindTraces(t.Context(), &storage_v2.FindTracesRequest{Query: &storage_v2.TraceQueryParameters{}})
	if err == nil {
		_, err = slow.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.GetServices(t.Context(), &storage_v2.GetServicesRequest{})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("read during a slow one: error %v, want ResourceExhausted", err)
	}
	for err != nil && t.Context().Err() == nil { // until the slow read times out
		_, err = c.GetServices(t.Context(), &storage_v2.GetServicesRequest{})
	}
	for err = nil; err == nil; {
		_, err = slow.Recv()
	}
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("slow read: error %v, want DeadlineExceeded", err)
	}
}

// TestClientCancelsRead checks that a read ends when its client cancels it.
func TestClientCancelsRead(t *testing.T) {
	reading, ended := make(chan struct{}), make(chan struct{})
	s := &store{reading: func(ctx context.Context) {
		close(reading)
		<-ctx.Done()
		close(ended)
	}}
	conn := serve(t, s, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := storage_v2.NewTraceReaderClient(conn).FindTraces(ctx,
		&storage_v2.FindTracesRequest{Query: &storage_v2.TraceQueryParameters{}}); err != nil {
		t.Fatal(err)
	}
	<-reading
	cancel()
	<-ended
}

// TestSlowStore checks the timeout of reads.
func TestSlowStore(t *testing.T) {
	s := &store{reading: func(ctx context.Context) { <-ctx.Done() }}
	conn := serve(t, s, func(c *Config) { c.QueryTimeout = pipeline.Duration(time.Millisecond) })
	_, err := storage_v2.NewTraceReaderClient(conn).FindTraceIDs(t.Context(),
		&storage_v2.FindTraceIDsRequest{Query: &storage_v2.TraceQueryParameters{}})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("error %v", err)
	}
}
