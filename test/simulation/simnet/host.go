package simnet

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Host is one incarnation of a machine that runs a program.
type Host struct {
	net  *Network
	addr string

	state     state
	listeners map[int]*listener
	sockets   map[int]*socket
	conns     map[*conn]struct{}
	lastPort  int
}

// state is the state of a machine.
type state int

const (
	running   state = iota
	killed          // the machine runs without the program and refuses connections
	powerless       // the machine does not answer
)

// firstPort is the start of the range of ports that are assigned automatically.
const firstPort = 32768

// Host starts the machine with an IP address. It must not be running. Connections from before a
// power cut are reset when data arrives on them.
func (n *Network) Host(addr string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := &Host{net: n, addr: addr, listeners: map[int]*listener{}, sockets: map[int]*socket{},
		conns: map[*conn]struct{}{}, lastPort: firstPort}
	old := n.hosts[addr]
	n.hosts[addr] = h
	if old == nil {
		return h
	}
	for c := range old.conns {
		if c.in.size > 0 { // the other end sent data during the power cut
			c.reset()
		}
	}
	for _, l := range n.links {
		close(l.changed) // pending dials retry
		l.changed = make(chan struct{})
	}
	return h
}

// Kill ends the program. Its connections are closed, and its ports refuse new ones.
func (h *Host) Kill() { h.end(killed) }

// CutPower stops the machine. Its peers do not notice.
func (h *Host) CutPower() { h.end(powerless) }

func (h *Host) end(s state) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if h.state != running {
		return
	}
	h.state = s
	for _, l := range h.listeners {
		l.close()
	}
	for _, s := range h.sockets {
		s.close()
	}
	for c := range h.conns {
		if s == killed {
			c.close()
			continue
		}
		c.closed = true // for the program; the other end does not notice
		c.in.wake()
		c.out.wake()
	}
}

// Listen listens for connections on a TCP port of the host. Port 0 selects a free port.
func (h *Host) Listen(_ context.Context, network, address string) (net.Listener, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	port, err := h.freePort(address, func(p int) bool { return h.listeners[p] != nil })
	if err != nil {
		return nil, h.failed("listen", network, port, err)
	}
	l := &listener{host: h, port: port, changed: make(chan struct{})}
	h.listeners[port] = l
	return l, nil
}

// freePort returns the port of an address, or a free port if it is 0.
func (h *Host) freePort(address string, taken func(int) bool) (int, error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	port, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, err
	case h.state != running:
		return port, syscall.ENETDOWN
	case port == 0:
		return h.nextPort(), nil
	case taken(port):
		return port, syscall.EADDRINUSE
	}
	return port, nil
}

func (h *Host) nextPort() int {
	h.lastPort++
	return h.lastPort
}

// Dial connects to host:port. It waits during a partition or power cut until ctx ends.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("port of %q: %w", address, err)
	}
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	c, err := h.connect(ctx, to, port)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: tcpAddr(to, port), Err: err}
	}
	return c, nil
}

func (h *Host) connect(ctx context.Context, to string, port int) (net.Conn, error) {
	l := h.net.link(h.addr, to)
	arrival := time.Now().Add(2 * l.Delay) // a round trip
	for {
		peer := h.net.hosts[to]
		reached := !l.Down && peer != nil && peer.state != powerless
		switch {
		case ctx.Err() != nil:
			return nil, timeout(ctx.Err())
		case h.state != running:
			return nil, syscall.ENETDOWN
		case !reached:
			h.net.wait(time.Time{}, l.changed, ctx.Done())
		case !past(arrival):
			h.net.wait(arrival, l.changed, ctx.Done())
		case l.Refuse || peer.state == killed || peer.listeners[port] == nil:
			return nil, syscall.ECONNREFUSED
		default:
			return h.join(peer, port, l), nil
		}
	}
}

// join creates the two ends of a connection and passes one to the listener.
func (h *Host) join(peer *Host, port int, l *link) *conn {
	rng := h.net.rng(h.addr, peer.addr)
	there, back := newStream(h.net, l, rng), newStream(h.net, l, rng)
	mine, theirs := tcpAddr(h.addr, h.nextPort()), tcpAddr(peer.addr, port)
	c := &conn{host: h, in: back, out: there, local: mine, remote: theirs}
	other := &conn{host: peer, in: there, out: back, local: theirs, remote: mine}
	c.peer, other.peer = other, c
	h.conns[c], peer.conns[other] = struct{}{}, struct{}{}
	peer.listeners[port].add(other)
	return c
}

// timeout converts the error of a context to the error of a system call.
func timeout(err error) error {
	if err == context.DeadlineExceeded {
		return os.ErrDeadlineExceeded
	}
	return err
}

func tcpAddr(host string, port int) *net.TCPAddr {
	return &net.TCPAddr{IP: net.ParseIP(host), Port: port}
}

func (h *Host) failed(op, network string, port int, err error) error {
	return &net.OpError{Op: op, Net: network, Addr: tcpAddr(h.addr, port), Err: err}
}

// listener is a TCP port that accepts connections.
type listener struct {
	host    *Host
	port    int
	waiting []*conn
	closed  bool
	changed chan struct{} // closed and replaced when a connection arrives or the listener is closed
}

func (l *listener) add(c *conn) {
	l.waiting = append(l.waiting, c)
	l.wake()
}

func (l *listener) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Accept waits for a connection and returns the oldest one.
func (l *listener) Accept() (net.Conn, error) {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	for {
		switch {
		case l.closed:
			return nil, l.host.failed("accept", "tcp", l.port, net.ErrClosed)
		case len(l.waiting) > 0:
			c := l.waiting[0]
			l.waiting = l.waiting[1:]
			return c, nil
		}
		l.host.net.wait(time.Time{}, l.changed, nil)
	}
}

// Close stops listening and resets the connections that were not accepted.
func (l *listener) Close() error {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	if l.closed {
		return l.host.failed("close", "tcp", l.port, net.ErrClosed)
	}
	l.close()
	return nil
}

func (l *listener) close() {
	l.closed = true
	delete(l.host.listeners, l.port)
	for _, c := range l.waiting {
		c.reset()
	}
	l.waiting = nil
	l.wake()
}

// Addr returns the address with the port.
func (l *listener) Addr() net.Addr { return tcpAddr(l.host.addr, l.port) }
