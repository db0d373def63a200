package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// Initial size of the buffer of ReadBody, in bytes. The buffer grows by doubling, so that the
// budget is charged for received bytes and not for the announced length.
const (
	initialBodyBuffer    = 32 << 10  // if the length is unknown
	maxInitialBodyBuffer = 256 << 10 // if the length is known
	typicalRatio         = 4         // compression ratio of spans
)

// ReadBody returns the whole decompressed body of a request served by an [HTTP]. The caller owns
// the bytes. They are charged to the budget before they are allocated and until the handler
// returns. The error is a *[Refusal] and is already counted.
func ReadBody(r *http.Request) ([]byte, error) {
	if b, ok := r.Body.(*body); ok {
		return b.readAll()
	}
	return io.ReadAll(r.Body) // wrapped by another handler; Read charges the budget
}

// body is the decompressed body of a request.
type body struct {
	server      *HTTP
	reservation *pipeline.Reservation
	charged     int64 // bytes reserved
	conn        *http.ResponseController
	wire        wireReader         // compressed bytes
	encoding    string             // Content-Encoding
	length      int64              // Content-Length, -1 if unknown
	dec         *bodyDecoder       // nil if not compressed or not in use
	src         io.Reader          // decompressed bytes; nil before the first read
	got         int64              // decompressed bytes read
	trace       *selftrace.Request // nil if the request is not traced
	err         error              // sticky
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

// release frees the decoder and the reservation when the handler has returned.
func (b *body) release() {
	b.close()
	b.reservation.Release()
}

// Read implements io.Reader and charges the bytes it returns.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.next(p)
	if err == nil || err == io.EOF {
		if cerr := b.charge(int64(n)); cerr != nil {
			return 0, b.fail(cerr)
		}
	}
	return n, err
}

// Close does nothing: the server calls release when the handler returns.
func (b *body) Close() error { return nil }

// readAll reads the body into a buffer that grows as needed.
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
			return b.trim(buf), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// grow moves buf to a larger buffer. The maximum size is one byte more than the limit of the body,
// so that a longer body is detected.
func (b *body) grow(buf []byte) ([]byte, error) {
	size := int64(2 * cap(buf))
	if size == 0 {
		size = b.initialSize()
	}
	maxSize := b.server.maxBody + 1
	if isIdentity(b.encoding) && b.length >= 0 {
		maxSize = min(maxSize, b.length+1)
	}
	size = min(size, maxSize)
	if err := b.charge(size); err != nil {
		return nil, err
	}
	grown := append(make([]byte, 0, size), buf...)
	return grown, b.charge(-int64(cap(buf)))
}

func (b *body) initialSize() int64 {
	switch {
	case b.length < 0:
		return initialBodyBuffer
	case isIdentity(b.encoding):
		return min(b.length+1, maxInitialBodyBuffer)
	}
	return min(max(b.length*typicalRatio, bytes.MinRead), maxInitialBodyBuffer)
}

// trim copies buf if it has much unused capacity, which would stay in memory as long as its spans.
func (b *body) trim(buf []byte) []byte {
	if cap(buf)-len(buf) <= len(buf)/4 || b.charge(int64(len(buf))) != nil {
		return buf
	}
	b.charge(-int64(cap(buf))) //nolint:errcheck // a smaller charge never fails
	return append(make([]byte, 0, len(buf)), buf...)
}

// next reads decompressed bytes without charging them. It reads at most one byte beyond the limit.
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

// end finishes the body after its last byte. It returns io.EOF on success.
func (b *body) end() error {
	if b.dec != nil {
		if err := b.dec.atEnd(); err != nil {
			return b.fail(err)
		}
	}
	b.close()
	b.err = io.EOF
	b.markRead()
	// While the handler works, net/http keeps reading to detect a disconnected client. read_timeout
	// must not end that read.
	b.conn.SetReadDeadline(time.Time{}) //nolint:errcheck // it fails only on a closed connection
	return io.EOF
}

func (b *body) open() error {
	if b.length > b.server.maxBody {
		return tooLarge(b.server.maxBody)
	}
	if isIdentity(b.encoding) {
		b.src = &b.wire
		return nil
	}
	dec, err := b.server.decoders.get(b)
	if err != nil {
		return err
	}
	b.dec, b.src = dec, dec
	return nil
}

// close returns the decoder to its pool.
func (b *body) close() {
	if b.dec != nil {
		b.dec.release()
		b.dec = nil
	}
	if b.err == nil {
		b.err = http.ErrBodyReadAfterClose
	}
}

// fail stores err as the error of all further reads, counts the refusal and returns it.
func (b *body) fail(err error) error {
	var r *Refusal
	switch {
	case errors.As(err, &r):
	case errors.As(b.wire.err, &r):
	case b.wire.err == nil || b.wire.err == io.EOF: // the decoder failed, not the connection
		r = badEncoding(unexpectedEOF(err))
	case isTimeout(b.wire.err): // retrying may succeed
		r = refuse(ReasonIncomplete, b.wire.err)
	default:
		r = refuse(ReasonIncomplete, pipeline.Permanent(b.wire.err))
	}
	b.server.acceptor.countRefused(r.Reason)
	b.close()
	b.err = r
	return r
}

// charge changes the reservation by n bytes. A negative n never fails.
func (b *body) charge(n int64) error {
	if err := b.reservation.Resize(b.charged + n); err != nil {
		return refuse(ReasonOverBudget, err)
	}
	b.charged += n
	return nil
}

// wireReader reads the compressed body. It keeps the error that ended the body, because decoders
// wrap or replace it.
type wireReader struct {
	body io.ReadCloser
	max  int64
	left int64 // bytes until max
	err  error
}

// Read implements io.Reader. It returns a *Refusal beyond the limit.
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
