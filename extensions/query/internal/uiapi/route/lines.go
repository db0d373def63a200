package route

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
)

// Lines writes a response that is sent line by line, each line as soon as it is complete.
type Lines struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
}

// NewLines begins a response of the given content type.
func NewLines(w http.ResponseWriter, contentType string) *Lines {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Accel-Buffering", "no") // disables the buffering of proxies
	return &Lines{w: w, control: http.NewResponseController(w)}
}

// HeadOnly responds to HEAD requests without running the query, and reports whether it did.
func HeadOnly(w http.ResponseWriter, r *http.Request, contentType string) bool {
	if r.Method != http.MethodHead {
		return false
	}
	w.Header().Set("Content-Type", contentType)
	return true
}

// Line sends the line that write appends. The error matches core.ErrUndelivered.
func (l *Lines) Line(write func(dst []byte) []byte) error {
	l.buf = append(write(l.buf[:0]), '\n')
	return l.Send(l.buf)
}

// Value sends an object with one member as a line.
func (l *Lines) Value(name string, v any) error {
	b, err := json.Marshal(map[string]any{name: v})
	if err != nil {
		return err
	}
	return l.Line(func(dst []byte) []byte { return append(dst, b...) })
}

// Send sends bytes immediately. The error matches core.ErrUndelivered.
func (l *Lines) Send(b []byte) error {
	_, err := l.w.Write(b)
	if err == nil {
		err = l.control.Flush()
	}
	return core.Undelivered(err)
}

// ExtendDeadlines removes the read deadline of the listener. The client then has the given time to
// read the next part of the response.
func (l *Lines) ExtendDeadlines(now time.Time, timeout time.Duration) error {
	return ExtendDeadlines(l.w, now, timeout)
}

// ExtendDeadlines is like [Lines.ExtendDeadlines] for a response that is sent as a whole.
func ExtendDeadlines(w http.ResponseWriter, now time.Time, timeout time.Duration) error {
	control := http.NewResponseController(w)
	err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(now.Add(timeout)))
	if errors.Is(err, http.ErrNotSupported) { // by the recorders of tests
		return nil
	}
	return err
}
