package querytest

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Ask sends a request without a body.
func Ask(t testing.TB, h http.Handler, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	return Record(h, httptest.NewRequest(method, target, nil))
}

// Record returns the response to a request.
func Record(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Discard is a ResponseWriter that discards the response.
type Discard struct{ Headers http.Header }

// NewDiscard returns a Discard.
func NewDiscard() Discard { return Discard{http.Header{}} }

// Header returns the headers of the response.
func (d Discard) Header() http.Header { return d.Headers }

// WriteHeader does nothing.
func (d Discard) WriteHeader(int) {}

// Write does nothing.
func (d Discard) Write(p []byte) (int, error) { return len(p), nil }
