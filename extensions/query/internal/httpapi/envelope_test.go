package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A part that fails after some of it was sent aborts the connection.
func TestAddAbortsTornPart(t *testing.T) {
	l := NewList(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	err := l.Add(func(dst []byte) ([]byte, error) { return append(dst, "half"...), io.ErrUnexpectedEOF })
	if err != io.ErrUnexpectedEOF || string(l.Stream().Buf) != `{"data":` {
		t.Errorf("error %v, left %s", err, l.Stream().Buf)
	}
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("recovered %v", v)
		}
	}()
	err = l.Add(func(dst []byte) ([]byte, error) {
		b, err := l.Stream().Spill(append(dst, make([]byte, FlushSize)...))
		if err != nil {
			return b, err
		}
		return b, io.ErrUnexpectedEOF
	})
	t.Errorf("Add returned %v instead of aborting", err)
}
