package pipelinetest

import (
	"errors"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
)

// Hop is a next hop in a test: a gRPC server.
type Hop struct {
	// Addr is the address of the server.
	Addr string
	// Stop stops the server before the test ends.
	Stop func()
}

// StartHop starts a gRPC server with the services that register adds, and stops it when the test
// ends. addr is an address of localhost; port 0 means any free port.
func StartHop(tb testing.TB, addr string, register func(*grpc.Server), opts ...grpc.ServerOption) *Hop {
	tb.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	srv := grpc.NewServer(opts...)
	register(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	stop := sync.OnceFunc(func() {
		srv.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // stopped before it served
			tb.Errorf("Serve: %v", err)
		}
	})
	tb.Cleanup(stop)
	return &Hop{Addr: ln.Addr().String(), Stop: stop}
}
