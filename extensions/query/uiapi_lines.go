package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// lines writes an answer that goes to the client piece by piece, as soon as each is there.
type lines struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
}

func newLines(w http.ResponseWriter, contentType string) *lines {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Accel-Buffering", "no") // proxies that know it pass pieces on at once
	return &lines{w: w, control: http.NewResponseController(w)}
}

// headOnly answers requests for the headers alone: what would follow takes long, and nobody would see it.
func headOnly(w http.ResponseWriter, r *http.Request, contentType string) bool {
	if r.Method != http.MethodHead {
		return false
	}
	w.Header().Set("Content-Type", contentType)
	return true
}

// line writes what write appends, as a line. The error is errUndelivered.
func (l *lines) line(write func(dst []byte) []byte) error {
	l.buf = append(write(l.buf[:0]), '\n')
	return l.send(l.buf)
}

// value writes an object with one member as a line.
func (l *lines) value(name string, v any) error {
	b, err := json.Marshal(map[string]any{name: v})
	if err != nil {
		return err
	}
	return l.line(func(dst []byte) []byte { return append(dst, b...) })
}

func (l *lines) send(b []byte) error {
	_, err := l.w.Write(b)
	if err == nil {
		err = l.control.Flush()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUndelivered, err)
	}
	return nil
}

// outlive lifts the listener's bounds on how long a request may take to be read, and gives each piece that time to be written.
func (l *lines) outlive(now time.Time, each time.Duration) error {
	err := errors.Join(l.control.SetReadDeadline(time.Time{}), l.control.SetWriteDeadline(now.Add(each)))
	if errors.Is(err, http.ErrNotSupported) { // by what tests answer to
		return nil
	}
	return err
}
