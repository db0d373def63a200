package server_test

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/server"
)

// The connections of all listeners together are limited; a few of each listener are always
// admitted, also when another listener has reached the limit.
func TestConnectionLimitOfProcess(t *testing.T) {
	const limit, own = 40, 16
	f := newFixture(t, 0)
	var all atomic.Int64
	f.set.Connections = func(must bool) (release func()) {
		if all.Add(1) <= limit || must {
			return func() { all.Add(-1) }
		}
		all.Add(-1)
		return nil
	}
	addresses := []string{}
	for _, name := range []string{"first", "second"} {
		srv, err := server.NewHTTP(f.set, name, server.DefaultHTTPConfig("127.0.0.1:0"), http.NotFoundHandler())
		if err != nil {
			t.Fatal(err)
		}
		if err := srv.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer srv.Stop(t.Context()) //nolint:errcheck // the connections are closed before
		addresses = append(addresses, srv.Addr())
	}
	open := func(address string, n int) (conns []net.Conn) {
		for range n {
			if conn := dialAdmitted(t, address); conn != nil {
				conns = append(conns, conn)
			}
		}
		return conns
	}
	first, second := open(addresses[0], limit+10), open(addresses[1], own+10)
	if len(first) != limit || len(second) != own {
		t.Errorf("%d and %d connections, want %d and %d", len(first), len(second), limit, own)
	}
	if n := f.metric("tracing_server_refused_connections_total", ""); n != 20 {
		t.Errorf("%v refused connections, want 20", n)
	}
	for _, conn := range append(first, second...) {
		conn.Close()
	}
	deadline := time.Now().Add(2 * time.Minute)
	for f.metric("tracing_server_open_connections", "") > 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	again := open(addresses[1], limit)
	if len(again) != limit {
		t.Errorf("%d connections after the others were closed, want %d", len(again), limit)
	}
	for _, conn := range again {
		conn.Close()
	}
}

// dialAdmitted returns a connection on which the server has answered, or nil if the server has
// closed it.
func dialAdmitted(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") //nolint:errcheck // the read fails, too
	if _, err := conn.Read(make([]byte, 16)); err != nil {
		conn.Close()
		return nil
	}
	return conn
}
