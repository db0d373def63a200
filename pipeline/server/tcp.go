package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server/internal/listen"
)

// acceptPause is the delay after a failed accept, for example when no file descriptors are left.
const acceptPause = 500 * time.Millisecond

// TCP serves a custom message protocol over TCP. The handler runs once per connection, in its own
// goroutine. It reads messages with [Conn.Next] and answers them with [Conn.Write]. The connection
// is closed when the handler returns.
type TCP struct {
	acceptor   *acceptor
	set        pipeline.Settings
	config     TCPConfig
	maxMessage int
	handler    func(ctx context.Context, c *Conn)
	tls        *tls.Config     // nil if plaintext
	ctx        context.Context // of handlers
	cancel     context.CancelFunc
	stopping   chan struct{}
	active     activeCalls // connections

	mu    sync.Mutex
	conns map[*Conn]struct{}
}

var (
	_ pipeline.Starter     = (*TCP)(nil)
	_ pipeline.Stopper     = (*TCP)(nil)
	_ pipeline.Replaceable = (*TCP)(nil)
)

// NewTCP returns a server that listens after Start. name is the path of its block below the
// component, or `tcp`; it is the label listener of the metrics and a prefix of errors. The context
// of handlers is canceled when the context of Stop ends and connections are closed.
func NewTCP(set pipeline.Settings, name string, cfg TCPConfig, handler func(ctx context.Context, c *Conn)) (*TCP, error) {
	sec, err := newSecurity(set, name, SecurityConfig{TLS: cfg.TLS})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	a, err := newAcceptor(set, name, transportTCP, cfg.Endpoint, cfg.MaxConnections, sec)
	if err != nil {
		return nil, err
	}
	s := &TCP{acceptor: a, set: a.set, config: cfg, maxMessage: int(cfg.MaxMessageSize), handler: handler}
	s.stopping, s.conns = make(chan struct{}), map[*Conn]struct{}{}
	if sec.tls != nil {
		s.tls = sec.tls.Listener()
	}
	// While a buffer grows, the message is in memory twice, so at most half the budget can be
	// admitted.
	if half := int(capToBudget(2*int64(s.maxMessage), set.Budget) / 2); half < s.maxMessage {
		s.set.Logger.Warn("max_message_size exceeds half of service.limits.inflight; using half of it", zap.Int("bytes", half))
		s.maxMessage = half
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Addr returns the listening address, or "" before Start.
func (s *TCP) Addr() string { return s.acceptor.addr() }

// Transport returns `tcp`.
func (s *TCP) Transport() string { return transportTCP }

// CountRefused counts a message that the handler refused before it passed on data. Messages that
// the server itself refuses are already counted.
func (s *TCP) CountRefused(reason string) { s.acceptor.countRefused(reason) }

// Start opens the listener. The error names the configuration key to change.
func (s *TCP) Start(ctx context.Context) error {
	return s.acceptor.start(ctx, s.accept, pipeline.ErrStopping)
}

// HandOver closes the listener. Clients cannot be asked to connect again; Stop ends their
// connections between two messages.
func (s *TCP) HandOver(context.Context) { s.acceptor.stopAccepting() }

// Stop closes the listener and waits for the handlers. They finish the current message; then
// [Conn.Next] returns io.EOF or a refusal. If ctx ends first, it closes all connections and returns
// an error with their number.
func (s *TCP) Stop(ctx context.Context) error {
	defer s.cancel()
	close(s.stopping)
	s.acceptor.listener.Close() //nolint:errcheck // the accept loop reports errors
	<-s.acceptor.served
	s.forEachConn((*Conn).stop)
	select {
	case <-s.active.whenIdle():
		return nil
	case <-ctx.Done():
	}
	open := s.active.count()
	if open == 0 {
		return nil
	}
	err := fmt.Errorf("%s: %d connections aborted: %w", s.acceptor.name, open, ctx.Err())
	s.cancel()
	s.forEachConn((*Conn).abort)
	listen.Wait(listen.StopGrace, s.active.whenIdle())
	return err
}

func (s *TCP) forEachConn(f func(*Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		f(c)
	}
}

// accept runs the accept loop. It returns pipeline.ErrStopping after Stop, or an error if the
// listener was closed otherwise.
func (s *TCP) accept(ln net.Listener) error {
	for {
		c, err := ln.Accept()
		if err == nil {
			s.open(c)
			continue
		}
		select {
		case <-s.stopping:
			return pipeline.ErrStopping
		default:
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		s.set.Logger.Warn("cannot accept connection; will retry", zap.Error(err))
		listen.Wait(acceptPause, s.stopping)
	}
}

// open serves a connection in a new goroutine. Stop waits for it.
func (s *TCP) open(raw net.Conn) {
	c := &Conn{server: s, raw: raw, conn: raw}
	if s.tls != nil {
		c.conn = tls.Server(raw, s.tls)
	}
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	s.active.begin()
	go func() {
		defer s.active.end()
		defer s.remove(c)
		defer c.close()
		s.serve(c)
	}()
}

func (s *TCP) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *TCP) serve(c *Conn) {
	defer s.recover(c)
	if err := c.handshake(); err != nil {
		s.set.Logger.Warn("TLS handshake failed", zap.Stringer("client", c.raw.RemoteAddr()), zap.Error(err))
		return
	}
	s.handler(s.ctx, c)
}

// recover logs a panic of the handler. The connection is then closed, because the state of the
// protocol is unknown.
func (s *TCP) recover(c *Conn) {
	v := recover()
	if v == nil {
		return
	}
	s.acceptor.metrics.panics.Inc()
	s.set.Logger.Error("BUG: handler panicked", zap.Any("panic", v), zap.Stringer("client", c.raw.RemoteAddr()), zap.Stack("stack"))
}
