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
)

// acceptPause is how long a listener that cannot accept, for want of file descriptors say, waits before it tries again.
const acceptPause = 500 * time.Millisecond

// TCP serves a protocol of messages over TCP. Each connection has a goroutine, in which the handler reads messages with [Conn.Next] and
// answers them until there are no more; the connection is closed when it returns.
type TCP struct {
	*base
	config     TCPConfig
	maxMessage int
	handler    func(ctx context.Context, c *Conn)
	tls        *tls.Config     // nil: plain text
	ctx        context.Context // of handlers
	cutOff     context.CancelFunc
	stopping   chan struct{}
	calls      calls // of the handler: one for each connection

	mu    sync.Mutex
	conns map[*Conn]struct{}
}

var (
	_ pipeline.Starter = (*TCP)(nil)
	_ pipeline.Stopper = (*TCP)(nil)
)

// NewTCP makes a server that does not listen yet. name is the path of its block below the component, or `tcp`: the metrics' label, and
// what errors call it. The context that handlers get ends when Stop loses its patience and cuts connections off.
func NewTCP(set pipeline.Settings, name string, cfg TCPConfig, handler func(ctx context.Context, c *Conn)) (*TCP, error) {
	sec, err := newSecurity(set, SecurityConfig{TLS: cfg.TLS})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	b, err := newBase(set, name, cfg.Endpoint, cfg.MaxConnections, sec)
	if err != nil {
		return nil, err
	}
	s := &TCP{base: b, config: cfg, maxMessage: int(cfg.MaxMessageSize), handler: handler}
	s.stopping, s.conns = make(chan struct{}), map[*Conn]struct{}{}
	if sec.tls != nil {
		s.tls = sec.tls.Listener()
	}
	// A buffer that grows is held twice for a moment, so one of half the budget is the greatest that can be admitted.
	if half := int(capToBudget(2*int64(s.maxMessage), set.Budget) / 2); half < s.maxMessage {
		b.set.Logger.Warn("max_message_size is more than half of service.limits.inflight; the half is the limit", zap.Int("bytes", half))
		s.maxMessage = half
	}
	s.ctx, s.cutOff = context.WithCancel(context.Background())
	return s, nil
}

// Start listens. The error names the key to change.
func (s *TCP) Start(ctx context.Context) error { return s.start(ctx, s.accept, pipeline.ErrStopping) }

// Stop accepts no more connections. Handlers finish the message that they work on, and learn from [Conn.Next] that there are no more.
// When ctx ends first, connections are closed and the error says how many they were.
func (s *TCP) Stop(ctx context.Context) error {
	defer s.cutOff()
	close(s.stopping)
	s.listener.Close() //nolint:errcheck // the goroutine that accepts notices
	<-s.served
	s.each((*Conn).stop)
	select {
	case <-s.calls.idle():
		return nil
	case <-ctx.Done():
	}
	open := s.calls.open()
	if open == 0 {
		return nil
	}
	err := fmt.Errorf("%s: %d connections were cut off: %w", s.name, open, ctx.Err())
	s.cutOff()
	s.each((*Conn).cut)
	within(hardStopGrace, s.calls.idle())
	return err
}

func (s *TCP) each(f func(*Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		f(c)
	}
}

// accept returns pipeline.ErrStopping, or the error of a listener that somebody else closed.
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
		s.set.Logger.Warn("cannot accept a connection; trying again", zap.Error(err))
		within(acceptPause, s.stopping)
	}
}

// open serves a connection in a goroutine of its own, which Stop waits for.
func (s *TCP) open(raw net.Conn) {
	c := &Conn{server: s, raw: raw, conn: raw}
	if s.tls != nil {
		c.conn = tls.Server(raw, s.tls)
	}
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	s.calls.begin()
	go func() {
		defer s.calls.end()
		defer s.forget(c)
		defer c.close()
		s.serve(c)
	}()
}

func (s *TCP) forget(c *Conn) {
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

// recover ends the connection of a handler that panicked: what it would have answered is not known.
func (s *TCP) recover(c *Conn) {
	v := recover()
	if v == nil {
		return
	}
	s.metrics.panics.Inc()
	s.set.Logger.Error("BUG: handler panicked", zap.Any("panic", v), zap.Stringer("client", c.raw.RemoteAddr()), zap.Stack("stack"))
}
