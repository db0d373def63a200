package udp

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

// readBatch is the maximum number of datagrams read by one system call, on systems that support it.
// Each has a buffer of the maximum size.
const readBatch = 16

// When the listener stops, it reads the datagrams that the operating system has already received,
// but at most what fits in the receive buffer, where a datagram uses at least minBuffered bytes
// more than its content. If the size of the buffer is unknown, it reads for at most drainTime.
// Where non-blocking reads are not supported, a read waits for drainIdle.
const (
	minBuffered = 256
	drainTime   = time.Second
	drainIdle   = 50 * time.Millisecond
)

// packet is a datagram in its read buffer.
type packet struct {
	buf  []byte
	n    int // length; for a longer datagram than allowed, the limit plus one
	from netip.AddrPort
}

// socket is a socket of a listener. One goroutine reads it.
type socket struct {
	conn    net.PacketConn
	packets []packet
	// read fills packets and returns their number. flags are flags of recvmmsg if batched is set,
	// and ignored otherwise.
	read    func(flags int) (int, error)
	batched bool
	drained int // bytes that drain has read

	mu     sync.Mutex
	drops  uint64 // total number of kernel drops
	last   uint32 // last kernel counter, which wraps around
	closed bool
}

// newSocket returns a socket that reads datagrams of up to size bytes.
func newSocket(conn net.PacketConn, size int) *socket {
	udp, ok := conn.(*net.UDPConn)
	s := &socket{conn: conn, batched: ok && runtime.GOOS == "linux"}
	s.packets = make([]packet, 1)
	if s.batched {
		s.packets = make([]packet, readBatch)
	}
	size++ // a datagram that fills the buffer is too long
	mem := make([]byte, len(s.packets)*size)
	for i := range s.packets {
		s.packets[i].buf = mem[i*size : (i+1)*size]
	}
	if ok {
		s.last, _ = socketDrops(udp) // counted for a component that used the socket before
	}
	s.read = s.readOne
	if s.batched {
		s.read = s.batchReader(udp)
	}
	return s
}

// batchReader uses package ipv4 for IPv6 as well: the packages differ only in protocol options.
func (s *socket) batchReader(conn *net.UDPConn) func(int) (int, error) {
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

// readOne is used in tests and on systems that read one datagram per call.
func (s *socket) readOne(int) (int, error) {
	p := &s.packets[0]
	n, from, err := s.conn.ReadFrom(p.buf)
	if err != nil && n < len(p.buf) { // an error with a full buffer means that the datagram is longer
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

// drain reads the datagrams that the operating system has already received. It does not wait for
// new ones.
func (s *socket) drain(deliver func([]packet)) {
	for more := s.drainLimit(); more(); {
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
		s.drained += n * minBuffered
		for _, p := range s.packets[:n] {
			s.drained += p.n
		}
		deliver(s.packets[:n])
	}
}

// drainLimit returns a function that reports whether drain may read on.
func (s *socket) drainLimit() func() bool {
	if conn, ok := s.conn.(*net.UDPConn); ok {
		if size, ok := grantedBuffer(conn); ok {
			return func() bool { return s.drained < 2*size }
		}
	}
	end := time.Now().Add(drainTime)
	return func() bool { return time.Now().Before(end) }
}

// wake ends a blocked read and all further reads until another deadline is set.
func (s *socket) wake() {
	s.conn.SetReadDeadline(time.Now().Add(-time.Second)) //nolint:errcheck // it fails only on a closed socket
}

// close reads the kernel drop counter one last time and closes the socket.
func (s *socket) close() {
	s.kernelDrops()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.conn.Close() //nolint:errcheck // nothing was written to it
}

// kernelDrops returns the number of datagrams that the operating system dropped since the socket
// was opened, because its buffer was full.
func (s *socket) kernelDrops() uint64 {
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

// isClosed reports whether the error means that the socket is closed.
func isClosed(err error) bool { return errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) }
