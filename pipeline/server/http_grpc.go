package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tracing-backend/tracing/pipeline"
)

// AddGRPC returns a gRPC server on the port of s, with the same TLS, authentication, tenancy and
// limit on connections, and messages of at most maxMessageMiB. Connections
// that begin with HTTP/2 go to it. With TLS, clients use HTTP/2 if they offer nothing else, such as
// gRPC clients; browsers use HTTP/1.1. s also starts, hands over and stops the gRPC server. opts
// are as in [NewGRPC]. Call AddGRPC before Start, at most once.
func (s *HTTP) AddGRPC(maxMessageMiB int, opts ...grpc.ServerOption) (*GRPC, error) {
	registerCompressors()
	of := s.acceptor
	a := &acceptor{name: of.name, transport: transportGRPC, endpoint: of.endpoint, set: of.set, metrics: of.metrics, security: of.security,
		served: make(chan struct{}), refusals: pipeline.NewRepeatLog(of.set)}
	cfg := DefaultGRPCConfig(of.endpoint)
	cfg.MaxRecvMsgSizeMiB, cfg.IncludeMetadata = maxMessageMiB, s.keepsHeaders
	cfg.ReadTimeout, cfg.WriteTimeout = pipeline.Duration(s.srv.ReadTimeout), pipeline.Duration(s.srv.WriteTimeout)
	g, err := newGRPC(a, cfg, insecure.NewCredentials(), opts...) // s ends TLS
	if err != nil {
		return nil, err
	}
	of.shared, s.grpc = &sharedListener{conns: make(chan net.Conn), closed: make(chan struct{})}, g
	of.security.addProtocol(protocolHTTP2)
	s.srv.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		protocolHTTP2: func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
			s.unused.onStateChange(conn, http.StateActive)
			of.shared.serve(conn)
		},
	}
	return g, nil
}

// protocolHTTP2 is the name of HTTP/2 in TLS handshakes (ALPN).
const protocolHTTP2 = "h2"

// startGRPC serves the connections that s passes on.
func (s *HTTP) startGRPC() {
	g, ln := s.grpc, s.acceptor.shared
	ln.Listener = s.acceptor.listener
	g.acceptor.listener = ln
	g.setServing()
	g.acceptor.run(g.srv.Serve, grpc.ErrServerStopped)
}

// sharedListener is the listener of a gRPC server that gets connections from an HTTP server.
type sharedListener struct {
	net.Listener // of the HTTP server, for its address
	conns        chan net.Conn
	once         sync.Once
	closed       chan struct{}
}

// Accept returns the next connection.
func (l *sharedListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. It does not close the listener of the HTTP server.
func (l *sharedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// serve passes a connection to the gRPC server and returns when that has closed it, or immediately
// if the server has stopped.
func (l *sharedListener) serve(conn net.Conn) {
	c := &sharedConn{Conn: conn, closed: make(chan struct{})}
	if conn.SetDeadline(time.Time{}) != nil {
		return
	}
	select {
	case l.conns <- c:
		<-c.closed
	case <-l.closed:
	}
}

// serveCounted is like serve, for a connection that began with the given bytes. Its Close no longer
// closes it: http.Server would do so when it stops.
func (l *sharedListener) serveCounted(c *countedConn, start []byte) {
	c.shared.Store(true)
	l.serve(&startedConn{countedConn: c, start: start})
	c.close() //nolint:errcheck // the gRPC server has closed or refused it
}

// sharedConn is a connection whose channel closed is closed after Close.
type sharedConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

// Close may be called more than once.
func (c *sharedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}

// startedConn is a connection whose first bytes were already read.
type startedConn struct {
	*countedConn
	start []byte
}

// Read implements net.Conn.
func (c *startedConn) Read(p []byte) (int, error) {
	if len(c.start) > 0 {
		n := copy(p, c.start)
		c.start = c.start[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Close implements net.Conn.
func (c *startedConn) Close() error { return c.close() }
