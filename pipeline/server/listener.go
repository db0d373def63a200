package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// hardStopGrace is how long Stop waits for handlers after it has cut their connections and thereby ended their contexts.
const hardStopGrace = time.Second

// base is what servers of all protocols share: the listener, and the goroutine that serves it.
type base struct {
	name     string // path of the listener's block below its component
	endpoint pipeline.Endpoint
	maxConns int
	set      pipeline.Settings
	metrics  *metrics
	listener net.Listener
	security *security
	served   chan struct{} // closed when the serving goroutine has ended
}

func newBase(set pipeline.Settings, name string, endpoint pipeline.Endpoint, maxConns int, sec *security) (*base, error) {
	m, err := newMetrics(set.Metrics, name)
	if err != nil {
		return nil, err
	}
	set.Logger = set.Logger.With(zap.String("listener", name))
	return &base{name: name, endpoint: endpoint, maxConns: maxConns, set: set, metrics: m, security: sec, served: make(chan struct{})}, nil
}

// Addr returns the address that is listened on, or "" before Start.
func (b *base) Addr() string {
	if b.listener == nil {
		return ""
	}
	return b.listener.Addr().String()
}

// Refused counts a request that the handler refused before it handed data on. What the server itself refuses is counted already.
func (b *base) Refused(reason string) { b.metrics.refused.WithLabelValues(reason).Inc() }

// start opens the listener and serves it in a goroutine until serve returns. An error of serve other than closed is not expected.
func (b *base) start(ctx context.Context, serve func(net.Listener) error, closed error) error {
	if err := b.security.load(); err != nil {
		return fmt.Errorf("%s.%w", b.name, err)
	}
	ln, err := b.set.Env.Listen(ctx, "tcp", string(b.endpoint))
	if err != nil {
		return listenError(b.name, b.endpoint, err)
	}
	b.listener = &cappedListener{Listener: ln, max: int64(b.maxConns), metrics: b.metrics}
	b.set.Logger.Info("listening", zap.String("address", b.Addr()))
	go func() {
		defer close(b.served)
		if err := serve(b.listener); err != nil && !errors.Is(err, closed) {
			b.set.Report(fmt.Errorf("%s: serving %s: %w", b.name, b.endpoint, err))
		}
	}()
	return nil
}

// listenError says which key to change, and to what.
func listenError(name string, endpoint pipeline.Endpoint, err error) error {
	hint := "check the address"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "another process uses this port; stop it, or write another port"
	case errors.Is(err, syscall.EACCES):
		hint = "this user may not use this port; write one above 1023"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "this machine does not have this address; write localhost, 0.0.0.0 or one that it has"
	}
	return fmt.Errorf("%s.endpoint: cannot listen on %s: %w (%s)", name, endpoint, err, hint)
}

// cappedListener closes connections at once while max of them are open: waiting in the backlog would only hide the overload.
type cappedListener struct {
	net.Listener
	max     int64
	open    atomic.Int64
	metrics *metrics
}

// Accept returns the next connection that fits below the cap.
func (l *cappedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.max {
			l.metrics.open.Inc()
			return &cappedConn{Conn: c, owner: l}, nil
		}
		l.open.Add(-1)
		l.metrics.turnedAway.Inc()
		c.Close() //nolint:errcheck // nothing was said on it
	}
}

// cappedConn gives its place back when it is closed.
type cappedConn struct {
	net.Conn
	owner *cappedListener
	once  sync.Once
}

// Close may be called more than once, as servers do.
func (c *cappedConn) Close() error {
	c.once.Do(func() {
		c.owner.open.Add(-1)
		c.owner.metrics.open.Dec()
	})
	return c.Conn.Close()
}

// CloseWrite tells the client that nothing more comes, where the connection can.
func (c *cappedConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}
