package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// apiError is an element of errors in an answer.
type apiError struct {
	Code    int    `json:"code,omitempty"`
	Msg     string `json:"msg"`
	TraceID string `json:"traceID,omitempty"`
}

// tail is what follows data in every answer.
type tail struct {
	Total  int        `json:"total"`
	Limit  int        `json:"limit"`
	Offset int        `json:"offset"`
	Errors []apiError `json:"errors"`
}

// writeError answers with a JSON body as text/plain, which is what clients of this API know.
func writeError(w http.ResponseWriter, status int, msg string) {
	body, err := json.Marshal(struct {
		Data any `json:"data"`
		tail
	}{tail: tail{Errors: []apiError{{Code: status, Msg: msg}}}})
	if err != nil {
		body = []byte(msg)
	}
	http.Error(w, string(body), status)
}

// errUndelivered says that an answer could not be written: nobody is there to be told.
var errUndelivered = errors.New("client is gone")

// flushAt is how many bytes of an answer are gathered before they are sent. Until then an error can still change the status.
const flushAt = 256 << 10

// indentAt is how many bytes of an answer are indented at once. Deep in values that lie in each other, a byte can become hundreds of blanks.
const indentAt = 16 << 10

// stream writes an answer in parts, so that no answer is held in memory as a whole.
type stream struct {
	w      http.ResponseWriter
	pretty *indenter // nil: compact
	buf    []byte
	wide   []byte // what is written next, indented
	sent   int    // parts that are with the client, the status before the first
}

// buffers holds what answers are gathered in.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// newStream begins an answer, to be ended with close. prettyPrint is the parameter of that name: anything but nothing and `false` asks for
// indented JSON.
func newStream(w http.ResponseWriter, r *http.Request) stream {
	s := stream{w: w, buf: (*buffers.Get().(*[]byte))[:0]}
	if p := r.URL.Query().Get("prettyPrint"); p != "" && p != "false" {
		s.pretty = &indenter{}
	}
	return s
}

// close gives back what the answer was gathered in.
func (s *stream) close() {
	const keep = 2 * flushAt
	if b := s.buf; cap(b) <= keep {
		buffers.Put(&b)
	}
}

// spill sends b, the answer up to here, when it is long enough, and returns what to append to.
func (s *stream) spill(b []byte) ([]byte, error) {
	if len(b) < flushAt {
		return b, nil
	}
	s.buf = b
	err := s.flush()
	return s.buf, err
}

// flush sends what was gathered. The error is errUndelivered.
func (s *stream) flush() error {
	if s.sent == 0 {
		s.w.Header().Set("Content-Type", "application/json")
	}
	s.sent++
	err := s.write(s.buf)
	s.buf = s.buf[:0]
	if err != nil {
		return fmt.Errorf("%w: %w", errUndelivered, err)
	}
	return nil
}

func (s *stream) write(part []byte) error {
	if s.pretty == nil {
		_, err := s.w.Write(part)
		return err
	}
	for p := range slices.Chunk(part, indentAt) {
		s.wide = s.pretty.appendTo(s.wide[:0], p)
		if _, err := s.w.Write(s.wide); err != nil {
			return err
		}
	}
	return nil
}

// isWorth reports whether an answer that was broken off is ended with what it holds, which is found many traces: when the time ran out, and,
// once there is no other answer to give, when the memory did. A store that fails is no reason to give a part for the whole.
func (s *stream) isWorth(found int, err error) bool {
	return found > 0 && errors.Is(err, context.DeadlineExceeded) || s.sent > 0 && errors.Is(err, errBusy)
}

// add appends a part of the answer that write appends to its argument, which may go through spill. An error of write leaves the answer
// as it was, unless some of the part is with the client: then the connection is cut, so that nobody takes half of it for the whole.
func (s *stream) add(write func([]byte) ([]byte, error)) error {
	before, sent := len(s.buf), s.sent
	b, err := write(s.buf)
	switch {
	case err == nil:
		s.buf, err = s.spill(b)
	case errors.Is(err, errUndelivered):
	case s.sent > sent:
		panic(http.ErrAbortHandler)
	default:
		s.buf = s.buf[:before]
	}
	return err
}

// list is an answer whose data is a list.
type list struct {
	stream
	count int
}

// newList begins an answer as newStream does.
func newList(w http.ResponseWriter, r *http.Request) *list {
	l := &list{stream: newStream(w, r)}
	l.buf = append(l.buf, `{"data":`...)
	return l
}

// add adds an element to the list, see stream.add.
func (l *list) add(write func([]byte) ([]byte, error)) error {
	err := l.stream.add(func(dst []byte) ([]byte, error) {
		mark := byte(',')
		if l.count == 0 {
			mark = '['
		}
		return write(append(dst, mark))
	})
	if err == nil {
		l.count++
	}
	return err
}

// finish ends the list and the answer. empty is what data is when nothing was added: `[]` or `null`.
func (l *list) finish(empty string, t tail) error {
	if l.count == 0 {
		l.buf = append(l.buf, empty...)
	} else {
		l.buf = append(l.buf, ']')
	}
	end, err := json.Marshal(t)
	if err != nil {
		return err
	}
	l.buf = append(append(l.buf, ','), end[1:]...) // without the brace that newList wrote
	return l.flush()
}
