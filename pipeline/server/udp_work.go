package server

import (
	"errors"
	"fmt"
	"net/netip"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Messages of the interface specification, section 1 "Debug logging", and of what agents log. Users search for them.
const (
	msgDatagram = "Span(s) received by the agent"
	msgFailed   = "Processor failed"
)

var errEmptyDatagram = errors.New("the datagram is empty")

// datagramTooLarge names the key to change.
type datagramTooLarge struct{ max int }

func (e *datagramTooLarge) Error() string {
	return fmt.Sprintf("the datagram is longer than max_packet_size, which is %d bytes", e.max)
}

// Unwrap returns the limit.
func (e *datagramTooLarge) Unwrap() error {
	return &otlpdata.LimitError{Limit: "datagram in bytes", Max: e.max, TooLarge: true}
}

// work hands datagrams to the handler until the server stops and nothing waits.
func (s *UDP) work() {
	for d := s.queue.take(); d != nil; d = s.queue.take() {
		s.handle(d)
	}
}

func (s *UDP) handle(d *Datagrams) {
	defer d.Release()
	defer s.recover(d)
	if s.set.Logger.Core().Enabled(zap.DebugLevel) {
		for _, data := range d.All() {
			s.tell(len(data))
		}
	}
	s.handler(s.ctx, d)
	s.metrics.handled.Add(int64(d.n - d.refused))
}

// recover ends what a handler that panicked was working on: what it did is not known.
func (s *UDP) recover(d *Datagrams) {
	v := recover()
	if v == nil {
		return
	}
	s.metrics.panics.Inc()
	s.metrics.refuse(ReasonPanic, d.n-d.refused)
	s.set.Logger.Error("BUG: handler panicked", zap.Any("panic", v), zap.Int("datagrams", d.n), zap.Stack("stack"))
}

// tell writes the debug line of one datagram.
func (s *UDP) tell(size int) {
	if ce := s.set.Logger.Check(zap.DebugLevel, msgDatagram); ce != nil {
		ce.Write(zap.Int("bytes-received", size))
	}
}

// Refuse counts a datagram that is not handed on, and logs it, as often as lines are allowed. reason is one of the Reason constants, or the
// handler's own.
func (d *Datagrams) Refuse(from netip.AddrPort, reason string, err error) {
	d.refused++
	d.server.refuse(from, reason, err)
}

// Failed logs, as often as lines are allowed, that n datagrams were handed on, and that what they held was not taken. It is counted as handled
// here, and as refused by the pipeline.
func (d *Datagrams) Failed(n int, err error) {
	d.server.metrics.failed.Add(int64(n))
	d.server.lines.error(d.server.set.Logger, msgFailed, zap.Error(err), zap.Int("datagrams", n))
}

// Release gives the bytes back, for handlers that go on without them. It may be called more than once.
func (d *Datagrams) Release() {
	if d.mem != nil {
		d.server.queue.recycle(d.mem)
		d.mem = nil
	}
}

func (s *UDP) refuse(from netip.AddrPort, reason string, err error) {
	s.metrics.refuse(reason, 1)
	s.lines.error(s.set.Logger, msgFailed, zap.Error(err), zap.Stringer("sender", from), zap.String("reason", reason))
}
