package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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

// list writes an answer whose data is a list, element by element, so that no answer is held in memory as a whole.
type list struct {
	w      http.ResponseWriter
	pretty bool
	buf    []byte
	count  int
	sent   bool // the status and a part of the body are with the client
}

// buffers holds what answers are gathered in.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// newList begins an answer, to be ended with close. prettyPrint is the parameter of that name: anything but nothing and `false` asks for indented JSON.
func newList(w http.ResponseWriter, r *http.Request) *list {
	p := r.URL.Query().Get("prettyPrint")
	l := &list{w: w, pretty: p != "" && p != "false", buf: (*buffers.Get().(*[]byte))[:0]}
	l.text("{", "\n    ")
	l.text(`"data":`, " ")
	return l
}

// close gives back what the list was gathered in.
func (l *list) close() {
	const keep = 2 * flushAt
	if b := l.buf; cap(b) <= keep {
		buffers.Put(&b)
	}
}

// text appends a piece of JSON, and behind it white space where the answer is indented.
func (l *list) text(s, space string) {
	l.buf = append(l.buf, s...)
	if l.pretty {
		l.buf = append(l.buf, space...)
	}
}

// add appends the element that write appends to its argument. An error of write is returned and leaves the list as it was; other errors
// say that the client is gone.
func (l *list) add(write func([]byte) ([]byte, error)) error {
	before := len(l.buf)
	l.separate()
	var err error
	if l.pretty {
		err = l.indent(write)
	} else {
		l.buf, err = write(l.buf)
	}
	switch {
	case errors.Is(err, errUndelivered):
		return err
	case err != nil:
		l.buf = l.buf[:before]
		return err
	}
	l.count++
	l.buf, err = l.spill(l.buf)
	return err
}

// spill sends b, the answer up to here, when it is long enough, and returns what to append to. It is for answers that are not indented.
func (l *list) spill(b []byte) ([]byte, error) {
	if len(b) < flushAt {
		return b, nil
	}
	l.buf = b
	err := l.flush()
	return l.buf, err
}

func (l *list) separate() {
	mark := ","
	if l.count == 0 {
		mark = "["
	}
	l.text(mark, "\n        ")
}

func (l *list) indent(write func([]byte) ([]byte, error)) error {
	element, err := write(nil)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, element, "        ", "    "); err != nil {
		return err
	}
	l.buf = append(l.buf, out.Bytes()...)
	return nil
}

// finish ends the list and the answer. empty is what data is when nothing was added: `[]` or `null`.
func (l *list) finish(empty string, t tail) error {
	if l.count == 0 {
		l.buf = append(l.buf, empty...)
	} else {
		l.text("", "\n    ")
		l.buf = append(l.buf, ']')
	}
	l.buf = append(l.buf, ',')
	end, err := l.marshal(t)
	if err != nil {
		return err
	}
	l.buf = append(l.buf, end[1:]...) // without the brace that newList wrote
	return l.flush()
}

func (l *list) marshal(t tail) ([]byte, error) {
	if l.pretty {
		return json.MarshalIndent(t, "", "    ")
	}
	return json.Marshal(t)
}

func (l *list) flush() error {
	if !l.sent {
		l.w.Header().Set("Content-Type", "application/json")
		l.sent = true
	}
	_, err := l.w.Write(l.buf)
	l.buf = l.buf[:0]
	if err != nil {
		return fmt.Errorf("%w: %w", errUndelivered, err)
	}
	return nil
}
