package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
)

// The buffer that ReadBody begins with, in bytes: for a body of unknown size, and at most. It grows by doubling, so that a client is
// charged for what it has sent, not for what it announces.
const (
	firstBodyBuffer = 32 << 10
	mostFirstBuffer = 256 << 10
	usualRatio      = 4 // of compressed spans
)

// ReadBody returns the whole body of a request that an [HTTP] serves, decompressed. Buffers are charged to the budget before they are
// allocated, until the handler returns; the bytes belong to the caller. The error is a *[Refusal], and is counted.
func ReadBody(r *http.Request) ([]byte, error) {
	if b, ok := r.Body.(*body); ok {
		return b.readAll()
	}
	return io.ReadAll(r.Body) // wrapped by a handler in between: charged as it is read
}

// body is the decompressed body of a request.
type body struct {
	server      *HTTP
	reservation *pipeline.Reservation
	held        int64 // bytes of it
	conn        *http.ResponseController
	wire        wireReader
	encoding    string // Content-Encoding
	length      int64  // Content-Length, -1 if unknown
	dec         *lentDecoder
	src         io.Reader // nil before the first read
	got         int64     // decompressed bytes so far
	err         error     // sticky
}

func (s *HTTP) newBody(w http.ResponseWriter, r *http.Request) (*body, error) {
	res, err := s.set.Budget.Reserve(0)
	if err != nil {
		return nil, err
	}
	return &body{
		server:      s,
		reservation: res,
		conn:        http.NewResponseController(w),
		wire:        wireReader{body: r.Body, max: s.maxBody, left: s.maxBody},
		encoding:    r.Header.Get("Content-Encoding"),
		length:      r.ContentLength,
	}, nil
}

// release ends the request: its handler has returned.
func (b *body) release() {
	b.close()
	b.reservation.Release()
}

// Read charges what it returns.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.next(p)
	if err == nil || err == io.EOF {
		if cerr := b.charge(int64(n)); cerr != nil {
			return 0, b.fail(cerr)
		}
	}
	return n, err
}

// Close is for handlers that close bodies; the server cleans up itself.
func (b *body) Close() error { return nil }

// readAll grows a buffer until the body ends.
func (b *body) readAll() ([]byte, error) {
	var buf []byte
	for {
		if len(buf) == cap(buf) {
			grown, err := b.grow(buf)
			if err != nil {
				return nil, b.fail(err)
			}
			buf = grown
		}
		n, err := b.next(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return b.fit(buf), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// grow moves buf to a larger buffer. It has room for one byte more than the body may have, which is how the end is noticed.
func (b *body) grow(buf []byte) ([]byte, error) {
	size := int64(2 * cap(buf))
	if size == 0 {
		size = b.firstSize()
	}
	most := b.server.maxBody + 1
	if plain(b.encoding) && b.length >= 0 {
		most = min(most, b.length+1)
	}
	size = min(size, most)
	if err := b.charge(size); err != nil {
		return nil, err
	}
	grown := append(make([]byte, 0, size), buf...)
	return grown, b.charge(-int64(cap(buf)))
}

func (b *body) firstSize() int64 {
	switch {
	case b.length < 0:
		return firstBodyBuffer
	case plain(b.encoding):
		return min(b.length+1, mostFirstBuffer)
	}
	return min(max(b.length*usualRatio, bytes.MinRead), mostFirstBuffer)
}

// fit returns buf without much unused capacity, which the spans would keep in memory as long as they live.
func (b *body) fit(buf []byte) []byte {
	if cap(buf)-len(buf) <= len(buf)/4 || b.charge(int64(len(buf))) != nil {
		return buf
	}
	b.charge(-int64(cap(buf))) //nolint:errcheck // giving back never fails
	return append(make([]byte, 0, len(buf)), buf...)
}

// next reads decompressed bytes without charging them, and never more than one beyond the limit.
func (b *body) next(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.src == nil {
		if err := b.open(); err != nil {
			return 0, b.fail(err)
		}
	}
	if left := b.server.maxBody - b.got + 1; int64(len(p)) > left {
		p = p[:left]
	}
	n, err := b.src.Read(p)
	if b.got += int64(n); b.got > b.server.maxBody {
		return 0, b.fail(tooLarge(b.server.maxBody))
	}
	if err == io.EOF {
		return n, b.end()
	}
	if err != nil {
		return n, b.fail(err)
	}
	return n, nil
}

// end returns io.EOF when the whole body has been read.
func (b *body) end() error {
	if b.dec != nil {
		if err := b.dec.atEnd(); err != nil {
			return b.fail(err)
		}
	}
	b.close()
	b.err = io.EOF
	// The server notices a client that goes away by reading on; read_timeout must not be taken for that while the handler works.
	b.conn.SetReadDeadline(time.Time{}) //nolint:errcheck // a connection that cannot is gone
	return io.EOF
}

func (b *body) open() error {
	if b.length > b.server.maxBody {
		return tooLarge(b.server.maxBody)
	}
	if plain(b.encoding) {
		b.src = &b.wire
		return nil
	}
	dec, err := b.server.decoders.lend(b)
	if err != nil {
		return err
	}
	b.dec, b.src = dec, dec
	return nil
}

// close gives the decoder back.
func (b *body) close() {
	if b.dec != nil {
		b.dec.giveBack()
		b.dec = nil
	}
	if b.err == nil {
		b.err = http.ErrBodyReadAfterClose
	}
}

// fail makes err the body's error from now on, and counts it.
func (b *body) fail(err error) error {
	var r *Refusal
	switch {
	case errors.As(err, &r):
	case errors.As(b.wire.err, &r):
	case b.wire.err == nil || b.wire.err == io.EOF: // the wire was well
		r = badEncoding(noEOF(err))
	case isTimeout(b.wire.err): // slow today, not for ever
		r = refuse(ReasonIncomplete, b.wire.err)
	default:
		r = refuse(ReasonIncomplete, pipeline.Permanent(b.wire.err))
	}
	b.server.Refused(r.Reason)
	b.close()
	b.err = r
	return r
}

// charge makes the body hold n bytes more, or less. Less never fails.
func (b *body) charge(n int64) error {
	if err := b.reservation.Resize(b.held + n); err != nil {
		return refuse(ReasonOverBudget, err)
	}
	b.held += n
	return nil
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// noEOF turns an end where data was expected into an error.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// wireReader reads what comes over the connection, and remembers why it ended: decoders wrap or replace errors.
type wireReader struct {
	body io.ReadCloser
	max  int64
	left int64 // bytes below max
	err  error
}

// Read returns a *Refusal beyond the limit.
func (w *wireReader) Read(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if int64(len(p)) > w.left+1 {
		p = p[:w.left+1]
	}
	n, err := w.body.Read(p)
	if int64(n) > w.left {
		n, err = int(w.left), tooLarge(w.max)
	}
	w.left -= int64(n)
	w.err = err
	return n, err
}
