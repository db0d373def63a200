package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
)

// FlushSize is the number of response bytes that are buffered before they are sent. Until then, an
// error can still change the status code.
const FlushSize = 256 << 10

// indentSize is the number of bytes that are indented in one step: in deeply nested values, one
// byte can become hundreds of spaces.
const indentSize = 16 << 10

// Stream writes a JSON response in parts, so that no response is in memory as a whole. Append to
// Buf, and call Flush at the end.
type Stream struct {
	Buf      []byte
	w        http.ResponseWriter
	indent   *indenter // nil for compact JSON
	indented []byte    // buffer for the part that is written
	sent     int       // number of parts that were sent
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// NewStream begins a response, which must be ended with Close. The response is indented if the
// parameter prettyPrint is set to anything but `false`.
func NewStream(w http.ResponseWriter, r *http.Request) *Stream {
	s := &Stream{w: w, Buf: (*buffers.Get().(*[]byte))[:0]}
	if p := r.URL.Query().Get("prettyPrint"); p != "" && p != "false" {
		s.indent = &indenter{}
	}
	return s
}

// Close gives the buffer back to its pool. It does not send anything.
func (s *Stream) Close() {
	const maxPooled = 2 * FlushSize
	if b := s.Buf; cap(b) <= maxPooled {
		buffers.Put(&b)
	}
}

// Sent reports whether a part of the response, and with it the status code, was sent.
func (s *Stream) Sent() bool { return s.sent > 0 }

// Spill sends b, which is Buf with more appended, if it is long enough. It returns the slice to
// append to.
func (s *Stream) Spill(b []byte) ([]byte, error) {
	if len(b) < FlushSize {
		return b, nil
	}
	s.Buf = b
	err := s.Flush()
	return s.Buf, err
}

// Flush sends the buffered part. Its error matches core.ErrUndelivered.
func (s *Stream) Flush() error {
	if s.sent == 0 {
		s.w.Header().Set("Content-Type", "application/json")
	}
	s.sent++
	err := s.write(s.Buf)
	s.Buf = s.Buf[:0]
	return core.Undelivered(err)
}

func (s *Stream) write(part []byte) error {
	if s.indent == nil {
		_, err := s.w.Write(part)
		return err
	}
	for p := range slices.Chunk(part, indentSize) {
		s.indented = s.indent.appendTo(s.indented[:0], p)
		if _, err := s.w.Write(s.indented); err != nil {
			return err
		}
	}
	return nil
}

// Add appends a part of the response: write appends to its argument and may pass it through Spill.
// If write fails, the response stays unchanged. If some of the part was already sent, Add aborts
// the connection by a panic with http.ErrAbortHandler, so that no client mistakes half a part for a
// whole one.
func (s *Stream) Add(write func([]byte) ([]byte, error)) error {
	before, sent := len(s.Buf), s.sent
	b, err := write(s.Buf)
	switch {
	case err == nil:
		s.Buf, err = s.Spill(b)
	case errors.Is(err, core.ErrUndelivered):
	case s.sent > sent:
		panic(http.ErrAbortHandler)
	default:
		s.Buf = s.Buf[:before]
	}
	return err
}
