package simnet

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"time"
)

// receiveBuffer is the maximum number of datagrams that a socket holds. More datagrams are lost.
const receiveBuffer = 64

// socket is a UDP port.
type socket struct {
	host     *Host
	port     int
	rng      *rand.Rand
	way      []datagram // in transit, in any order
	closed   bool
	deadline time.Time
	changed  chan struct{}
}

type datagram struct {
	at    time.Time
	bytes []byte
	from  net.Addr
}

// ListenPacket opens a UDP port of the host. Port 0 selects a free port.
func (h *Host) ListenPacket(_ context.Context, network, address string) (net.PacketConn, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	port, err := h.freePort(address, func(p int) bool { return h.sockets[p] != nil })
	if err != nil {
		return nil, h.failed("listen", network, port, err)
	}
	s := &socket{host: h, port: port, rng: h.net.rng(h.addr, address), changed: make(chan struct{})}
	h.sockets[port] = s
	return s, nil
}

func (s *socket) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// ReadFrom returns the datagram that has arrived first, truncated to len(p).
func (s *socket) ReadFrom(p []byte) (int, net.Addr, error) {
	s.host.net.mu.Lock()
	defer s.host.net.mu.Unlock()
	for {
		switch {
		case s.closed:
			return 0, nil, s.failed("read", net.ErrClosed)
		case past(s.deadline):
			return 0, nil, s.failed("read", os.ErrDeadlineExceeded)
		}
		var next time.Time
		if len(s.way) > 0 {
			first := slices.MinFunc(s.way, func(a, b datagram) int { return a.at.Compare(b.at) })
			if next = first.at; past(next) {
				i := slices.IndexFunc(s.way, func(d datagram) bool { return d.at.Equal(next) })
				s.way = slices.Delete(s.way, i, i+1)
				return copy(p, first.bytes), first.from, nil
			}
		}
		s.host.net.wait(earliest(next, s.deadline), s.changed, nil)
	}
}

// WriteTo sends a datagram. It does not report whether the datagram arrives.
func (s *socket) WriteTo(p []byte, to net.Addr) (int, error) {
	host, text, err := net.SplitHostPort(to.String())
	if err != nil {
		return 0, s.failed("write", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0, s.failed("write", err)
	}
	s.host.net.mu.Lock()
	defer s.host.net.mu.Unlock()
	if s.closed {
		return 0, s.failed("write", net.ErrClosed)
	}
	peer := s.host.net.hosts[host]
	if peer == nil || peer.sockets[port] == nil {
		return len(p), nil
	}
	l := s.host.net.link(s.host.addr, host)
	s.deliver(l, peer.sockets[port], p)
	if s.rng.Float64() < l.Duplicate {
		s.deliver(l, peer.sockets[port], p)
	}
	return len(p), nil
}

func (s *socket) deliver(l *link, to *socket, p []byte) {
	if l.Down || s.rng.Float64() < l.Loss || len(to.way) >= receiveBuffer {
		return
	}
	at := time.Now().Add(l.Delay)
	if l.Jitter > 0 {
		at = at.Add(time.Duration(s.rng.Int64N(int64(l.Jitter))))
	}
	to.way = append(to.way, datagram{at, slices.Clone(p), s.LocalAddr()})
	to.wake()
}

// Close frees the port.
func (s *socket) Close() error {
	s.host.net.mu.Lock()
	defer s.host.net.mu.Unlock()
	if s.closed {
		return s.failed("close", net.ErrClosed)
	}
	s.close()
	return nil
}

func (s *socket) close() {
	s.closed, s.way = true, nil
	delete(s.host.sockets, s.port)
	s.wake()
}

// LocalAddr returns the address with the port.
func (s *socket) LocalAddr() net.Addr {
	return &net.UDPAddr{IP: net.ParseIP(s.host.addr), Port: s.port}
}

// SetDeadline is SetReadDeadline, because writes never block.
func (s *socket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetReadDeadline sets the time at which pending and future reads fail.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.host.net.mu.Lock()
	defer s.host.net.mu.Unlock()
	if s.closed {
		return s.failed("set", net.ErrClosed)
	}
	s.deadline = t
	s.wake()
	return nil
}

// SetWriteDeadline does nothing, because writes never block.
func (s *socket) SetWriteDeadline(time.Time) error { return nil }

func (s *socket) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: "udp", Source: s.LocalAddr(), Err: err}
}
