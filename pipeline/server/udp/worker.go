package udp

import (
	"errors"
	"fmt"
	"net/netip"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Log messages that users of existing agents search for.
const (
	msgReceived = "Span(s) received by the agent"
	msgFailed   = "Processor failed"
)

var errEmptyDatagram = errors.New("datagram is empty")

// datagramTooLarge names the configuration key. It unwraps to a limit error, which determines its
// class.
type datagramTooLarge struct{ max int }

func (e *datagramTooLarge) Error() string {
	return fmt.Sprintf("datagram exceeds max_packet_size of %d bytes", e.max)
}

func (e *datagramTooLarge) Unwrap() error {
	return &otlpdata.LimitError{Limit: "datagram in bytes", Max: e.max, TooLarge: true}
}

// work passes datagrams to the handler until the server stops and the queue is empty.
func (s *Server) work() {
	for d := s.queue.takeDatagrams(); d != nil; d = s.queue.takeDatagrams() {
		s.handle(d)
	}
}

func (s *Server) handle(d *Datagrams) {
	defer d.Release()
	defer s.recover(d)
	if s.set.Logger.Core().Enabled(zap.DebugLevel) {
		for _, data := range d.All() {
			s.logReceived(len(data))
		}
	}
	s.handler(s.ctx, d)
	s.metrics.handled.Add(int64(d.n - d.refused))
}

// recover counts all datagrams of a handler that panicked as refused, because it is unknown which
// were processed.
func (s *Server) recover(d *Datagrams) {
	v := recover()
	if v == nil {
		return
	}
	s.metrics.panics.Inc()
	s.metrics.refuse(ReasonPanic, d.n-d.refused)
	s.set.Logger.Error("BUG: handler panicked", zap.Any("panic", v), zap.Int("datagrams", d.n), zap.Stack("stack"))
}

// logReceived writes the debug line for one datagram.
func (s *Server) logReceived(size int) {
	if ce := s.set.Logger.Check(zap.DebugLevel, msgReceived); ce != nil {
		ce.Write(zap.Int("bytes-received", size))
	}
}

// Refuse counts a datagram that does not enter the pipeline and logs it, at a limited rate. reason
// is one of the Reason constants of this package and of package server, or one of the handler's
// own.
func (d *Datagrams) Refuse(from netip.AddrPort, reason string, err error) {
	d.refused++
	d.server.refuse(from, reason, err)
}

// Failed logs, at a limited rate, that the pipeline did not accept the data of n datagrams. The
// datagrams still count as handled; the pipeline counts their spans as refused.
func (d *Datagrams) Failed(n int, err error) {
	d.server.metrics.failed.Add(int64(n))
	d.server.lines.error(d.server.set.Logger, msgFailed, zap.Error(err), zap.Int("datagrams", n))
}

// Release frees the memory of the datagrams early, for handlers that no longer need them. It may be
// called more than once.
func (d *Datagrams) Release() {
	if d.mem != nil {
		d.server.queue.recycle(d.mem)
		d.mem = nil
	}
}

func (s *Server) refuse(from netip.AddrPort, reason string, err error) {
	s.metrics.refuse(reason, 1)
	s.lines.error(s.set.Logger, msgFailed, zap.Error(err), zap.Stringer("sender", from), zap.String("reason", reason))
}
