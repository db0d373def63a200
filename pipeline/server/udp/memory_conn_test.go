package udp_test

import (
	"net"
	"os"
	"sync"
	"time"
)

// memoryConn is an in-memory net.PacketConn, which works in a synctest bubble.
type memoryConn struct {
	in     chan []byte
	errs   chan error
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex
	deadline time.Time
	changed  chan struct{}
}

func newMemoryConn() *memoryConn {
	return &memoryConn{in: make(chan []byte), errs: make(chan error), closed: make(chan struct{}), changed: make(chan struct{})}
}

var sender = &net.UDPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711}

func (c *memoryConn) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		c.mu.Lock()
		deadline, changed := c.deadline, c.changed
		c.mu.Unlock()
		var timeout <-chan time.Time
		if !deadline.IsZero() {
			if !time.Now().Before(deadline) {
				return 0, nil, os.ErrDeadlineExceeded
			}
			timeout = time.After(time.Until(deadline))
		}
		select {
		case b := <-c.in:
			return copy(p, b), sender, nil
		case err := <-c.errs:
			return 0, nil, err
		case <-c.closed:
			return 0, nil, net.ErrClosed
		case <-changed:
		case <-timeout:
		}
	}
}

func (c *memoryConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

func (c *memoryConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (c *memoryConn) LocalAddr() net.Addr {
	return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 6831}
}
func (c *memoryConn) WriteTo([]byte, net.Addr) (int, error) { return 0, os.ErrInvalid }
func (c *memoryConn) SetDeadline(t time.Time) error         { return c.SetReadDeadline(t) }
func (c *memoryConn) SetWriteDeadline(time.Time) error      { return nil }
