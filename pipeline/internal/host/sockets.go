package host

import (
	"context"
	"io"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/tracing-backend/tracing/pipeline"
)

// sockets holds the open sockets of all components. During a reload, the sockets of replaced
// components are offered to others: a component that listens on an offered address gets the same
// operating system socket, with the connections and datagrams that wait in it, so that no client is
// refused.
type sockets struct {
	mu      sync.Mutex
	open    map[*node][]*socket
	offered []*offer
}

// socket is a net.Listener or net.PacketConn that a component has opened.
type socket struct {
	network, address string
	conn             io.Closer
}

// offer is a socket of a component that is being replaced.
type offer struct {
	*socket
	owner *node
	copy  io.Closer // keeps the socket open if its owner closes it; nil if it cannot be copied
	taken bool
}

// offer offers the sockets of nodes of a graph that are not in the next one. Sockets on port 0 are
// not offered, because a component that asks for any free port expects a new one.
func (s *sockets) offer(from, to *graph) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offered = slices.DeleteFunc(s.offered, func(o *offer) bool {
		o.taken = false
		return to.has(o.owner) && o.close()
	})
	for _, n := range from.nodes {
		if to.has(n) {
			continue
		}
		for _, c := range s.open[n] {
			if _, port, err := net.SplitHostPort(c.address); err != nil || port == "0" {
				continue
			}
			o := &offer{socket: c, owner: n}
			if copied, err := copySocket(c.conn); err == nil {
				o.copy = copied
			}
			s.offered = append(s.offered, o)
		}
	}
}

// withdraw ends all offers, and forgets the sockets of nodes that are not in the graph.
func (s *sockets) withdraw(running *graph) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.offered {
		o.close()
	}
	s.offered = nil
	maps.DeleteFunc(s.open, func(n *node, _ []*socket) bool { return !running.has(n) })
}

// close closes the copy. It returns true.
func (o *offer) close() bool {
	if o.copy != nil {
		o.copy.Close() //nolint:errcheck // nothing was written to it
	}
	return true
}

// env returns env for a node. It records the sockets that the node opens.
func (s *sockets) env(n *node, env pipeline.Env) pipeline.Env {
	listen, listenPacket := env.Listen, env.ListenPacket
	env.Listen = func(ctx context.Context, network, address string) (net.Listener, error) {
		return openSocket(s, n, network, address, func() (net.Listener, error) { return listen(ctx, network, address) })
	}
	env.ListenPacket = func(ctx context.Context, network, address string) (net.PacketConn, error) {
		return openSocket(s, n, network, address, func() (net.PacketConn, error) { return listenPacket(ctx, network, address) })
	}
	return env
}

// openSocket returns an offered socket or a new one. If a new one cannot be opened because an
// offered socket has the same port at another address, the offered socket is closed.
func openSocket[T io.Closer](s *sockets, n *node, network, address string, listen func() (T, error)) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn, err := takeOffered[T](s, network, address)
	if conn == nil && err == nil {
		var opened T
		if opened, err = listen(); err != nil && s.closePort(network, address) {
			opened, err = listen()
		}
		conn = &opened
	}
	if err != nil {
		var none T
		return none, err
	}
	s.open[n] = append(s.open[n], &socket{network, address, *conn})
	return *conn, nil
}

// takeOffered returns the offered socket with an address, or nil.
func takeOffered[T io.Closer](s *sockets, network, address string) (*T, error) {
	for _, o := range s.offered {
		if o.taken || o.copy == nil || o.network != network || o.address != address {
			continue
		}
		c, err := copySocket(o.copy)
		if err != nil {
			return nil, err
		}
		o.taken = true
		conn := c.(T)
		return &conn, nil
	}
	return nil, nil
}

// closePort closes the offered sockets with the port of an address, and reports whether there are
// any. Their owners cannot be reused if the reload fails.
func (s *sockets) closePort(network, address string) (closed bool) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	for _, o := range s.offered {
		if _, p, err := net.SplitHostPort(o.address); o.taken || err != nil || p != port || o.network[:3] != network[:3] {
			continue
		}
		o.owner.ended.Store(true)
		o.conn.Close() //nolint:errcheck // nothing was written to it
		o.close()
		o.copy, closed = nil, true
	}
	return closed
}
