package pageapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
)

// lines writes an answer that is sent line by line, each as soon as it is complete.
type lines struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
}

func newLines(w http.ResponseWriter, contentType string) *lines {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Accel-Buffering", "no") // disables the buffering of proxies
	return &lines{w: w, control: http.NewResponseController(w)}
}

// headOnly answers HEAD requests without running the query, and reports whether it did.
func headOnly(w http.ResponseWriter, r *http.Request, contentType string) bool {
	if r.Method != http.MethodHead {
		return false
	}
	w.Header().Set("Content-Type", contentType)
	return true
}

// line sends the line that write appends. The error matches core.ErrUndelivered.
func (l *lines) line(write func(dst []byte) []byte) error {
	l.buf = append(write(l.buf[:0]), '\n')
	return l.send(l.buf)
}

// value sends an object with one member as a line.
func (l *lines) value(name string, v any) error {
	b, err := json.Marshal(map[string]any{name: v})
	if err != nil {
		return err
	}
	return l.line(func(dst []byte) []byte { return append(dst, b...) })
}

// send sends bytes at once. The error matches core.ErrUndelivered.
func (l *lines) send(b []byte) error {
	_, err := l.w.Write(b)
	if err == nil {
		err = l.control.Flush()
	}
	return core.Undelivered(err)
}

// extendDeadlines removes the read deadline of the listener and allows the client timeout for
// reading the next part of the answer.
func (l *lines) extendDeadlines(now time.Time, timeout time.Duration) error {
	err := errors.Join(l.control.SetReadDeadline(time.Time{}), l.control.SetWriteDeadline(now.Add(timeout)))
	if errors.Is(err, http.ErrNotSupported) { // by the recorders of tests
		return nil
	}
	return err
}
