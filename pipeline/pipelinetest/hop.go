package pipelinetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
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

// FixedAddress returns an address of localhost whose port is free for TCP and UDP, for a listener
// that a test closes and opens again. The port is below those that the system assigns to listeners
// at port 0, so these do not take it in the meantime.
func FixedAddress(tb testing.TB) string {
	tb.Helper()
	const first, ports, attempts = 20_000, 10_000, 1000
	var err error
	for range attempts {
		addr := fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(ports))
		if err = canListen(addr); err == nil {
			return addr
		}
	}
	tb.Fatal(err)
	return ""
}

// canListen opens and closes the listeners of an address.
func canListen(addr string) error {
	tcp, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	udp, err := net.ListenPacket("udp", addr)
	if err != nil {
		return errors.Join(err, tcp.Close())
	}
	return errors.Join(tcp.Close(), udp.Close())
}

// StartHop starts a gRPC server with the services that register adds, and stops it when the test
// ends. addr is an address of localhost; port 0 means any free port. A server that is started again
// at the same address needs one of [FixedAddress].
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
