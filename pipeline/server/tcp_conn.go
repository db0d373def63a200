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

// firstMessageBuffer is the size of a connection's buffer in bytes. It is kept while the connection waits; for a longer message it grows
// by doubling, so that a client is charged for what it has sent.
const firstMessageBuffer = 4 << 10

// lingerTime is how long a connection that the server ends is still read, without use: closed at once, the system would tell the client
// of a reset, and throw away answers that the client has not read.
const lingerTime = 500 * time.Millisecond

// Conn is a connection that a [TCP] serves. It belongs to the handler until that returns, and to one goroutine of it at a time.
type Conn struct {
	server *TCP
	raw    net.Conn // the connection itself
	conn   net.Conn // raw, or TLS over it

	reservation *pipeline.Reservation // of len(buf) bytes; nil: none yet
	buf         []byte
	start, end  int   // of what has been read and not been returned, in buf
	begun       bool  // the deadline is that of a message, not that of waiting for one
	eof         bool  // the client has said all
	err         error // sticky

	mu       sync.Mutex
	stopping bool // read no more
}

// Next returns the next message, as split cuts it (see [bufio.SplitFunc], and [SplitLines] for lines). The bytes are valid until the next
// call, and are charged to the budget. The error is io.EOF when there is no further message: the client has ended, or was silent for
// idle_timeout, or the server stops. Any other is a *[Refusal], which is counted, and which the handler tells the client before it
// returns. After an error there is nothing more to read.
func (c *Conn) Next(split bufio.SplitFunc) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	message, err := c.next(split)
	if err == nil {
		return message, nil
	}
	if r := (*Refusal)(nil); errors.As(err, &r) {
		c.server.Refused(r.Reason)
	}
	c.err = err
	return nil, err
}

// Write sends p, within write_timeout.
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
			return nil, c.ended(pipeline.ErrStopping)
		}
		message, err := c.take(split)
		switch {
		case err != nil:
			return nil, refuse(ReasonUndecodable, pipeline.Permanent(err))
		case message != nil:
			return message, nil
		case c.eof:
			return nil, c.ended(io.EOF)
		}
		if err := c.room(); err != nil {
			return nil, err
		}
		if err := c.fill(); err != nil {
			return nil, c.ended(err)
		}
	}
}

// take cuts a message off what has been read; nil: more is needed.
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

// room makes place in the buffer for at least one byte. Memory is charged before it is allocated.
func (c *Conn) room() error {
	if c.start == c.end {
		c.start, c.end = 0, 0
		if len(c.buf) > firstMessageBuffer {
			c.buf = nil // what one long message needed is not held for the next
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
	size := min(max(2*len(c.buf), firstMessageBuffer), c.server.maxMessage)
	if err := c.charge(len(c.buf) + size); err != nil {
		return err
	}
	grown := make([]byte, size)
	copy(grown, c.buf)
	c.buf = grown
	return c.charge(size)
}

// charge makes the connection hold n bytes of the budget. Less than before never fails.
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

// fill reads once. The end of what the client sends is not an error.
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
		return nil // if there is an error, too, the next read has it again
	}
	return err
}

// ended says what the end of reading means: nothing more, or half a message.
func (c *Conn) ended(err error) error {
	switch {
	case c.start == c.end:
		return io.EOF
	case c.isStopping():
		return refuse(ReasonStopping, pipeline.ErrStopping)
	case isTimeout(err): // slow today, not for ever
		return refuse(ReasonIncomplete, fmt.Errorf("the message did not end within read_timeout: %w", err))
	}
	return refuse(ReasonIncomplete, pipeline.Permanent(fmt.Errorf("the message does not end: %w", noEOF(err))))
}

// handshake does nothing for a connection without TLS.
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

// readWithin sets the deadline of the reads to come. Once the server stops it is in the past, and stays there.
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

// stop ends a read that waits, and all further ones. It may be called more than once, and when the connection is closed.
func (c *Conn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopping {
		c.stopping = true
		c.raw.SetReadDeadline(time.Now().Add(-time.Second)) //nolint:errcheck // it fails on a closed connection only
	}
}

// cut closes the connection under the handler.
func (c *Conn) cut() { c.raw.Close() } //nolint:errcheck // nothing is left to be told

// close ends the connection when its handler has returned, with a moment for the client to read the last answer.
func (c *Conn) close() {
	if c.reservation != nil {
		c.reservation.Release()
	}
	defer c.cut()
	c.stop() // from here on the read deadline is not the server's to change
	until := time.Now().Add(lingerTime)
	if c.raw.SetDeadline(until) != nil {
		return
	}
	w, ok := c.conn.(interface{ CloseWrite() error })
	if !ok || w.CloseWrite() != nil || c.eof {
		return
	}
	io.Copy(io.Discard, c.raw) //nolint:errcheck // it ends with the client, or with the deadline
}

// SplitLines is for [Conn.Next]: it cuts lines that end with \n or \r\n, which is not part of the message. Other than [bufio.ScanLines] it
// does not take for a line what a broken connection left of one.
func SplitLines(data []byte, _ bool) (advance int, line []byte, err error) {
	i := bytes.IndexByte(data, '\n')
	if i < 0 {
		return 0, nil, nil
	}
	return i + 1, bytes.TrimSuffix(data[:i:i], []byte("\r")), nil
}
