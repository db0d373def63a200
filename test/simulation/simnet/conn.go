package simnet

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// conn is one end of a connection.
type conn struct {
	host          *Host
	peer          *conn
	in, out       *stream
	local, remote *net.TCPAddr

	closed                      bool
	readDeadline, writeDeadline time.Time
}

// Read waits until something has arrived and returns it.
func (c *conn) Read(p []byte) (int, error) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, c.failed("read", net.ErrClosed)
		case c.in.err != nil:
			return 0, c.failed("read", c.in.err)
		case past(c.readDeadline):
			return 0, c.failed("read", os.ErrDeadlineExceeded)
		}
		first, at := c.in.first()
		switch {
		case first == nil:
			c.host.net.wait(earliest(at, c.readDeadline), c.in.changed, c.in.link.changed)
		case first.reset:
			c.reset()
		case first.end:
			return 0, io.EOF
		default:
			return c.in.read(first, p), nil
		}
	}
}

// Write returns when all bytes are in transit.
func (c *conn) Write(p []byte) (int, error) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	done := 0
	for done < len(p) {
		switch {
		case c.closed:
			return done, c.failed("write", net.ErrClosed)
		case past(c.writeDeadline):
			return done, c.failed("write", os.ErrDeadlineExceeded)
		}
		if c.stale() {
			c.reset()
		}
		n, err := c.out.write(p[done:])
		if err != nil {
			return done, c.failed("write", err)
		}
		if done += n; n == 0 {
			c.host.net.wait(c.writeDeadline, c.out.changed, c.out.link.changed)
		}
	}
	return done, nil
}

// stale reports whether the other end belongs to an earlier incarnation of a machine that has been
// restarted since.
func (c *conn) stale() bool {
	now := c.host.net.hosts[c.peer.host.addr]
	return c.peer.host.state == powerless && now != c.peer.host && now.state != powerless && !c.out.link.Down
}

// Close closes both directions. The other end can still read what was written before.
func (c *conn) Close() error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	if c.closed {
		return c.failed("close", net.ErrClosed)
	}
	c.close()
	return nil
}

func (c *conn) close() {
	c.closed = true
	c.out.finish()
	c.in.ignore()
	c.out.wake()
	c.forget()
}

// CloseWrite closes the outgoing direction. The other end reads io.EOF after the last byte.
func (c *conn) CloseWrite() error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	c.out.finish()
	return nil
}

// reset ends the connection for both ends.
func (c *conn) reset() {
	c.in.fail(syscall.ECONNRESET)
	c.out.fail(syscall.ECONNRESET)
	c.forget()
	c.peer.forget()
}

func (c *conn) forget() { delete(c.host.conns, c) }

// LocalAddr returns the address of this end.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other end.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	return c.deadline(&t, &t)
}

// SetReadDeadline sets the time at which pending and future reads fail.
func (c *conn) SetReadDeadline(t time.Time) error { return c.deadline(&t, nil) }

// SetWriteDeadline sets the time at which pending and future writes fail.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.deadline(nil, &t) }

func (c *conn) deadline(read, write *time.Time) error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	if c.closed {
		return c.failed("set", net.ErrClosed)
	}
	if read != nil {
		c.readDeadline = *read
		c.in.wake()
	}
	if write != nil {
		c.writeDeadline = *write
		c.out.wake()
	}
	return nil
}

func (c *conn) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
