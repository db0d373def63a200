package server

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/net/ipv4"
)

// readBatch is how many datagrams are read with one system call at most, where the system can do that. Each has a buffer for the greatest.
const readBatch = 16

// When the listener stops, what the system has taken is still read, for no longer than drainTime. Where a read cannot be told not to wait, it
// waits for drainIdle.
const (
	drainTime = time.Second
	drainIdle = 50 * time.Millisecond
)

// packet is a datagram in the buffer that it was read into.
type packet struct {
	buf  []byte
	n    int // length, which is more than the limit by 1 for all that are longer
	from netip.AddrPort
}

// udpSocket is one socket of a listener. One goroutine reads it.
type udpSocket struct {
	conn    net.PacketConn
	packets []packet
	// read fills packets from the first on, and returns how many. flags are those of the system's call, where it takes some.
	read    func(flags int) (int, error)
	batched bool // read takes flags

	mu     sync.Mutex
	drops  uint64 // by the system
	last   uint32 // the system's own count, which wraps around
	closed bool
}

// newUDPSocket reads datagrams of up to size bytes.
func newUDPSocket(conn net.PacketConn, size int) *udpSocket {
	udp, ok := conn.(*net.UDPConn)
	s := &udpSocket{conn: conn, batched: ok && runtime.GOOS == "linux"}
	s.packets = make([]packet, 1)
	if s.batched {
		s.packets = make([]packet, readBatch)
	}
	size++ // a longer datagram fills the buffer, and is known by that
	mem := make([]byte, len(s.packets)*size)
	for i := range s.packets {
		s.packets[i].buf = mem[i*size : (i+1)*size]
	}
	s.read = s.readOne
	if s.batched {
		s.read = s.batchReader(udp)
	}
	return s
}

// batchReader works for IPv6 as well: what differs between the two packages are the options of the protocols.
func (s *udpSocket) batchReader(conn *net.UDPConn) func(int) (int, error) {
	pc := ipv4.NewPacketConn(conn)
	messages := make([]ipv4.Message, len(s.packets))
	for i := range messages {
		messages[i].Buffers = [][]byte{s.packets[i].buf}
	}
	return func(flags int) (int, error) {
		n, err := pc.ReadBatch(messages, flags)
		if err != nil {
			return 0, err
		}
		for i, m := range messages[:n] {
			s.packets[i].n, s.packets[i].from = m.N, addrPort(m.Addr)
		}
		return n, nil
	}
}

// readOne is for connections of tests, and for systems where a call reads one datagram anyway.
func (s *udpSocket) readOne(int) (int, error) {
	p := &s.packets[0]
	n, from, err := s.conn.ReadFrom(p.buf)
	if err != nil && n < len(p.buf) { // where a full buffer comes with an error, it is that the datagram is longer
		return 0, err
	}
	p.n, p.from = n, addrPort(from)
	return 1, nil
}

func addrPort(a net.Addr) netip.AddrPort {
	if u, ok := a.(*net.UDPAddr); ok {
		return u.AddrPort()
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
}

// drain reads what the system has taken already.
func (s *udpSocket) drain(deliver func([]packet)) {
	for end := time.Now().Add(drainTime); time.Now().Before(end); {
		var deadline time.Time
		if !s.batched {
			deadline = time.Now().Add(drainIdle)
		}
		if s.conn.SetReadDeadline(deadline) != nil {
			return
		}
		n, err := s.read(dontWait)
		if err != nil {
			return
		}
		deliver(s.packets[:n])
	}
}

// wake ends a read that waits, and all further ones until another deadline is set.
func (s *udpSocket) wake() {
	s.conn.SetReadDeadline(time.Now().Add(-time.Second)) //nolint:errcheck // it fails on a closed socket only
}

// close reads the last count of drops, and closes.
func (s *udpSocket) close() {
	s.kernelDrops()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.conn.Close() //nolint:errcheck // nothing was written to it
}

// kernelDrops returns how many datagrams the system has thrown away since the socket was opened, because nobody read them in time.
func (s *udpSocket) kernelDrops() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn, ok := s.conn.(*net.UDPConn)
	if !ok || s.closed {
		return s.drops
	}
	if now, ok := socketDrops(conn); ok {
		s.drops += uint64(now - s.last)
		s.last = now
	}
	return s.drops
}

// isClosed tells the end of a socket from an error of one read.
func isClosed(err error) bool { return errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) }
