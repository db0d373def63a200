package server

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
)

// initialConnBuffer is the size of the buffer of an idle connection, in bytes. For a longer message
// it grows by doubling, so that the budget is charged for received bytes only.
const initialConnBuffer = 4 << 10

// lingerTime is how long the server reads and discards data after it has finished a connection.
// Without it, the operating system would send a reset, and responses that the client has not read
// yet would be lost.
const lingerTime = 500 * time.Millisecond

// Conn is a connection of a [TCP] server. The handler must not use it after it returns, nor from
// several goroutines at once.
type Conn struct {
	server *TCP
	raw    net.Conn // the connection itself
	conn   net.Conn // raw, or TLS over it

	reservation *pipeline.Reservation // of len(buf) bytes; nil before the first read
	buf         []byte
	start, end  int   // bounds of the unconsumed bytes in buf
	begun       bool  // a message has begun: the read deadline is read_timeout, not idle_timeout
	eof         bool  // the client has closed its side
	err         error // sticky

	mu       sync.Mutex
	stopping bool // no further reads
}

// Next returns the next message, delimited by split (see [bufio.SplitFunc]; [SplitLines] for
// lines). The bytes are valid until the next call and are charged to the budget. Next returns
// io.EOF if there are no more messages: the client has closed the connection, was silent for
// idle_timeout, or the server stops. Any other error is a *[Refusal] and is already counted; the
// handler should send it to the client. All errors are final.
func (c *Conn) Next(split bufio.SplitFunc) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	message, err := c.next(split)
	if err == nil {
		return message, nil
	}
	if r := (*Refusal)(nil); errors.As(err, &r) {
		c.server.CountRefused(r.Reason)
	}
	c.err = err
	return nil, err
}

// Write sends p. It fails after write_timeout.
func (c *Conn) Write(p []byte) (int, error) {
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.server.config.WriteTimeout.Std())); err != nil {
		return 0, err
	}
	return c.conn.Write(p)
}

func (c *Conn) next(split bufio.SplitFunc) ([]byte, error) {
	c.begun = false
	for {
		if c.isStopping() {
			return nil, c.endOfInput(pipeline.ErrStopping)
		}
		message, err := c.take(split)
		switch {
		case err != nil:
			return nil, refuse(ReasonUndecodable, pipeline.Permanent(err))
		case message != nil:
			return message, nil
		case c.eof:
			return nil, c.endOfInput(io.EOF)
		}
		if err := c.ensureSpace(); err != nil {
			return nil, err
		}
		if err := c.fill(); err != nil {
			return nil, c.endOfInput(err)
		}
	}
}

// take returns the next message in the buffer, or nil if more data is needed.
func (c *Conn) take(split bufio.SplitFunc) ([]byte, error) {
	for c.start < c.end {
		advance, message, err := split(c.buf[c.start:c.end], c.eof)
		if err != nil {
			return nil, err
		}
		c.start += advance
		if message != nil {
			return message, nil
		}
		if advance == 0 {
			break
		}
	}
	return nil, nil
}

// ensureSpace makes space in the buffer for at least one byte. It charges memory to the budget
// before it allocates it.
func (c *Conn) ensureSpace() error {
	if c.start == c.end {
		c.start, c.end = 0, 0
		if len(c.buf) > initialConnBuffer {
			c.buf = nil // do not keep the memory of a long message
		}
	}
	switch {
	case c.end < len(c.buf):
		return nil
	case c.start > 0:
		c.end = copy(c.buf, c.buf[c.start:c.end])
		c.start = 0
		return nil
	case len(c.buf) >= c.server.maxMessage:
		return refuse(ReasonTooLarge, &messageTooLarge{c.server.maxMessage})
	}
	size := min(max(2*len(c.buf), initialConnBuffer), c.server.maxMessage)
	if err := c.charge(len(c.buf) + size); err != nil {
		return err
	}
	grown := make([]byte, size)
	copy(grown, c.buf)
	c.buf = grown
	return c.charge(size)
}

// charge sets the reservation to n bytes. A smaller reservation never fails.
func (c *Conn) charge(n int) (err error) {
	if c.reservation == nil {
		c.reservation, err = c.server.set.Budget.Reserve(int64(n))
	} else {
		err = c.reservation.Resize(int64(n))
	}
	if err != nil {
		return refuse(ReasonOverBudget, err)
	}
	return nil
}

// fill reads once into the buffer. At io.EOF it sets c.eof and returns nil.
func (c *Conn) fill() error {
	var err error
	switch {
	case c.start == c.end:
		c.begun = false
		err = c.readWithin(c.server.config.IdleTimeout)
	case !c.begun:
		c.begun = true
		err = c.readWithin(c.server.config.ReadTimeout)
	}
	if err != nil {
		return err
	}
	n, err := c.conn.Read(c.buf[c.end:])
	c.end += n
	if err == io.EOF {
		c.eof = true
		return nil
	}
	if n > 0 {
		return nil // the next read returns the error again
	}
	return err
}

// endOfInput returns io.EOF if the input ends between messages, and a refusal if it ends within a
// message.
func (c *Conn) endOfInput(err error) error {
	switch {
	case c.start == c.end:
		return io.EOF
	case c.isStopping():
		return refuse(ReasonStopping, pipeline.ErrStopping)
	case isTimeout(err): // retrying may succeed
		return refuse(ReasonIncomplete, fmt.Errorf("message incomplete after read_timeout: %w", err))
	}
	return refuse(ReasonIncomplete, pipeline.Permanent(fmt.Errorf("message incomplete: %w", unexpectedEOF(err))))
}

// handshake performs the TLS handshake, if the connection uses TLS.
func (c *Conn) handshake() error {
	t, ok := c.conn.(*tls.Conn)
	if !ok {
		return nil
	}
	timeout := c.server.config.ReadTimeout
	if err := c.readWithin(timeout); err != nil {
		return err
	}
	if err := c.raw.SetWriteDeadline(time.Now().Add(timeout.Std())); err != nil {
		return err
	}
	return t.Handshake()
}

// readWithin sets the deadline of further reads. It fails after stop, which has set a deadline in
// the past.
func (c *Conn) readWithin(d pipeline.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return pipeline.ErrStopping
	}
	return c.raw.SetReadDeadline(time.Now().Add(d.Std()))
}

func (c *Conn) isStopping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopping
}

// stop ends the current read and all further ones. It may be called more than once and on a closed
// connection.
func (c *Conn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopping {
		c.stopping = true
		c.raw.SetReadDeadline(time.Now().Add(-time.Second)) //nolint:errcheck // it fails only on a closed connection
	}
}

// abort closes the connection while the handler may still use it.
func (c *Conn) abort() { c.raw.Close() } //nolint:errcheck // the connection is no longer needed

// close closes the connection after its handler has returned. It waits up to lingerTime for the
// client to read the last response.
func (c *Conn) close() {
	if c.reservation != nil {
		c.reservation.Release()
	}
	defer c.abort()
	c.stop() // after this, Stop does not change the read deadline
	until := time.Now().Add(lingerTime)
	if c.raw.SetDeadline(until) != nil {
		return
	}
	w, ok := c.conn.(interface{ CloseWrite() error })
	if !ok || w.CloseWrite() != nil || c.eof {
		return
	}
	io.Copy(io.Discard, c.raw) //nolint:errcheck // it ends when the client closes, or at the deadline
}

// SplitLines is a split function for [Conn.Next]. It returns lines without their end, \n or \r\n.
// Unlike [bufio.ScanLines], it does not return an unterminated last line.
func SplitLines(data []byte, _ bool) (advance int, line []byte, err error) {
	i := bytes.IndexByte(data, '\n')
	if i < 0 {
		return 0, nil, nil
	}
	return i + 1, bytes.TrimSuffix(data[:i:i], []byte("\r")), nil
}
