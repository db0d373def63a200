package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server/internal/listen"
)

// acceptor opens the TCP listener of an [HTTP] or [GRPC] server and runs its accept loop.
type acceptor struct {
	name      string // path of the listener's block below its component
	transport string
	endpoint  pipeline.Endpoint
	maxConns  int
	set       pipeline.Settings
	metrics   *metrics
	security  *security
	listener  net.Listener  // nil before start
	closing   atomic.Bool   // stopAccepting was called
	served    chan struct{} // closed when the accept loop has ended
	open      activeCalls   // connections
	refusals  *pipeline.RepeatLog
	shared    *sharedListener // of the gRPC server on the port of an HTTP server; nil without one
}

func newAcceptor(
	set pipeline.Settings, name, transport string, endpoint pipeline.Endpoint, maxConns int, sec *security,
) (*acceptor, error) {
	m, err := newMetrics(set.Metrics, name)
	if err != nil {
		return nil, err
	}
	set.Logger = set.Logger.With(zap.String("listener", name))
	return &acceptor{name: name, transport: transport, endpoint: endpoint, maxConns: maxConns, set: set, metrics: m, security: sec,
		served: make(chan struct{}), refusals: pipeline.NewRepeatLog(set)}, nil
}

// addr returns the address of the listener, or "" before start.
func (a *acceptor) addr() string {
	if a.listener == nil {
		return ""
	}
	return a.listener.Addr().String()
}

// isLoopback reports whether only this machine can connect.
func (a *acceptor) isLoopback() bool { return a.listener != nil && isLoopback(a.listener.Addr()) }

func (a *acceptor) countRefused(reason string) {
	a.metrics.refused.WithLabelValues(reason).Inc()
	if a.set.Refused != nil {
		a.set.Refused(a.transport, reason, 1)
	}
}

// start opens the listener and runs serve in a goroutine. An error of serve is reported unless it
// is closed, the error that serve returns after Stop.
func (a *acceptor) start(ctx context.Context, serve func(net.Listener) error, closed error) error {
	if err := a.security.load(); err != nil {
		return fmt.Errorf("%s.%w", a.name, err)
	}
	ln, err := a.set.Env.Listen(ctx, "tcp", string(a.endpoint))
	if err != nil {
		return listen.Error(a.name, a.endpoint, err)
	}
	a.listener = &limitListener{Listener: ln, max: a.maxConns, owner: a}
	a.set.Logger.Info("listening", zap.String("address", a.addr()))
	a.run(serve, closed)
	return nil
}

// run runs serve for the listener in a goroutine, see start.
func (a *acceptor) run(serve func(net.Listener) error, closed error) {
	go func() {
		defer close(a.served)
		defer a.refusals.Close()
		if err := serve(a.listener); err != nil && !errors.Is(err, closed) && !a.closing.Load() {
			a.set.Report(fmt.Errorf("%s: serving %s: %w", a.name, a.endpoint, err))
		}
	}()
}

// stopAccepting closes the listener and returns when the accept loop has ended. Open connections
// stay.
func (a *acceptor) stopAccepting() {
	a.closing.Store(true)
	a.listener.Close() //nolint:errcheck // it is no longer used
	<-a.served
}

// ownConnections is the number of connections that a listener may have open even if the process has
// reached its limit, so that clients of one listener cannot lock operators and health checks out of
// the others.
const ownConnections = 16

// limitListener closes new connections immediately while the listener or the process has its
// maximum number of connections. Leaving them in the backlog would only hide the overload.
type limitListener struct {
	net.Listener
	max   int
	owner *acceptor
}

// Accept returns the next connection within the limit.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		release, exceeded := l.admit()
		if exceeded != "" {
			l.refuse(c, exceeded)
			continue
		}
		l.owner.metrics.openConns.Inc()
		return &countedConn{Conn: c, listener: l, release: release}, nil
	}
}

// admit counts another connection until release is called, or returns the key of the limit that it
// would exceed.
func (l *limitListener) admit() (release func(), exceeded string) {
	open, ofProcess := l.owner.open.beginCall(), l.owner.set.Connections
	switch {
	case open > l.max:
		l.owner.open.end()
		return nil, "max_connections"
	case ofProcess == nil:
		return l.owner.open.end, ""
	}
	releaseOfProcess := ofProcess(open <= ownConnections)
	if releaseOfProcess == nil {
		l.owner.open.end()
		return nil, "service.limits.connections"
	}
	return func() {
		l.owner.open.end()
		releaseOfProcess()
	}, ""
}

func (l *limitListener) refuse(c net.Conn, key string) {
	l.owner.metrics.refusedConns.Inc()
	l.owner.refusals.Warn("closed connection: too many are open", zap.String("limit", key), zap.Stringer("client", c.RemoteAddr()))
	c.Close() //nolint:errcheck // nothing was written to it
}

// countedConn is a connection that counts toward the limit of its listener until it is closed. It
// is refused if its client speaks the wrong protocol.
type countedConn struct {
	net.Conn
	listener *limitListener
	release  func()
	known    bool   // whether the first bytes have been checked
	peeked   []byte // read for the check, to be returned by Read
	once     sync.Once
	shared   atomic.Bool // belongs to the gRPC server on the port of an HTTP server
}

// Close may be called more than once, as net/http and grpc do. It does nothing if the connection
// was passed to another server.
func (c *countedConn) Close() error {
	if c.shared.Load() {
		return nil
	}
	return c.close()
}

func (c *countedConn) close() error {
	c.once.Do(func() {
		c.release()
		c.listener.owner.metrics.openConns.Dec()
	})
	return c.Conn.Close()
}

// CloseWrite closes the sending half of the connection, or returns errors.ErrUnsupported.
func (c *countedConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}
