package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
)

// Error is an element of `errors` in a response.
type Error struct {
	Code    int    `json:"code,omitempty"`
	Msg     string `json:"msg"`
	TraceID string `json:"traceID,omitempty"`
}

// Footer is what follows `data` in a response.
type Footer struct {
	Total  int     `json:"total"`
	Limit  int     `json:"limit"`
	Offset int     `json:"offset"`
	Errors []Error `json:"errors"`
}

// AddError adds a message, unless it is empty.
func (f *Footer) AddError(msg string) {
	if msg != "" {
		f.Errors = append(f.Errors, Error{Msg: msg})
	}
}

// envelope is a response without data.
type envelope struct {
	Data any `json:"data"`
	Footer
}

// WriteError responds with an error. The body is JSON, but its type is text/plain, as existing
// clients expect.
func WriteError(w http.ResponseWriter, status int, msg string) {
	body, err := json.Marshal(envelope{Footer: Footer{Errors: []Error{{Code: status, Msg: msg}}}})
	if err != nil {
		body = []byte(msg)
	}
	http.Error(w, string(body), status)
}

// Fail responds to a request whose query failed, unless the client disconnected.
func Fail(b *core.Backend, w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return
	}
	status, text := b.HTTPError(w.Header(), err)
	WriteError(w, status, text)
}

// Gone reports whether the client has disconnected.
func Gone(r *http.Request, err error) bool {
	return r.Context().Err() != nil || errors.Is(err, core.ErrUndelivered)
}

// List is a response with an envelope, `{"data":[...],"total":0,...}`.
type List struct {
	stream *Stream
	count  int
}

// NewList begins a response, which must be ended with Close. prettyPrint is as in NewStream.
func NewList(w http.ResponseWriter, r *http.Request) *List {
	l := &List{stream: NewStream(w, r)}
	l.stream.Buf = append(l.stream.Buf, `{"data":`...)
	return l
}

// Close ends the use of the list.
func (l *List) Close() { l.stream.Close() }

// Stream returns the stream below the list, for data that is not a list.
func (l *List) Stream() *Stream { return l.stream }

// Len returns the number of elements.
func (l *List) Len() int { return l.count }

// Add adds an element, see Stream.Add.
func (l *List) Add(write func([]byte) ([]byte, error)) error {
	err := l.stream.Add(func(dst []byte) ([]byte, error) {
		separator := byte(',')
		if l.count == 0 {
			separator = '['
		}
		return write(append(dst, separator))
	})
	if err == nil {
		l.count++
	}
	return err
}

// Finish completes and sends the response. If nothing was added, data is empty: `[]`, `null`, or ""
// after data was appended to the stream.
func (l *List) Finish(empty string, f Footer) error {
	if l.count == 0 {
		l.stream.Buf = append(l.stream.Buf, empty...)
	} else {
		l.stream.Buf = append(l.stream.Buf, ']')
	}
	end, err := json.Marshal(f)
	if err != nil {
		return err
	}
	l.stream.Buf = append(append(l.stream.Buf, ','), end[1:]...) // without the brace that NewList wrote
	return l.stream.Flush()
}

// WriteList responds with a list of n small elements that element appends.
func WriteList(b *core.Backend, w http.ResponseWriter, r *http.Request, n int, empty string, f Footer,
	element func(dst []byte, i int) []byte,
) {
	l := NewList(w, r)
	defer l.Close()
	for i := range n {
		if l.Add(func(dst []byte) ([]byte, error) { return element(dst, i), nil }) != nil {
			return // the client disconnected
		}
	}
	b.LogUndelivered(l.Finish(empty, f))
}
