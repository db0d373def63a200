package server_test

import (
	"net"
	"os"
	"sync"
	"time"
)

// memPackets is a net.PacketConn without system calls, so that synctest owns the time.
type memPackets struct {
	in     chan []byte
	errs   chan error
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex
	deadline time.Time
	changed  chan struct{}
}

func newMemPackets() *memPackets {
	return &memPackets{in: make(chan []byte), errs: make(chan error), closed: make(chan struct{}), changed: make(chan struct{})}
}

var memSender = &net.UDPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711}

func (c *memPackets) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		c.mu.Lock()
		deadline, changed := c.deadline, c.changed
		c.mu.Unlock()
		var late <-chan time.Time
		if !deadline.IsZero() {
			if !time.Now().Before(deadline) {
				return 0, nil, os.ErrDeadlineExceeded
			}
			late = time.After(time.Until(deadline))
		}
		select {
		case b := <-c.in:
			return copy(p, b), memSender, nil
		case err := <-c.errs:
			return 0, nil, err
		case <-c.closed:
			return 0, nil, net.ErrClosed
		case <-changed:
		case <-late:
		}
	}
}

func (c *memPackets) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

func (c *memPackets) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (c *memPackets) LocalAddr() net.Addr {
	return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 6831}
}
func (c *memPackets) WriteTo([]byte, net.Addr) (int, error)   { return 0, os.ErrInvalid }
func (c *memPackets) SetDeadline(t time.Time) error           { return c.SetReadDeadline(t) }
func (c *memPackets) SetWriteDeadline(time.Time) (none error) { return nil }
