package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// How long requests took is told by method and status, whatever the client asked for and however the answer ended.
func TestRequestDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0).inMemory()
		s, _, _ := w.http(httpConfig(), func(rw http.ResponseWriter, r *http.Request) {
			time.Sleep(2 * time.Second)
			switch r.URL.Path {
			case "/missing":
				http.NotFound(rw, r)
			case "/panic":
				panic("boom")
			case "/text":
				fmt.Fprint(rw, "text")
			}
		})
		for _, target := range []string{"GET /empty", "GET /text", "POST /missing", "GET /panic", "BREW /1", "DRINK /2"} {
			var method, path string
			if _, err := fmt.Sscan(target, &method, &path); err != nil {
				t.Fatal(err)
			}
			s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
		}
		want := []string{"GET 200: 2 in 4s", "GET 500: 1 in 2s", "POST 404: 1 in 2s", "other 200: 2 in 4s"}
		if got := w.durations(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func (w *world) durations() (out []string) {
	w.t.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "tracing_server_http_request_duration" {
			continue
		}
		for _, m := range f.GetMetric() {
			label := map[string]string{}
			for _, l := range m.GetLabel() {
				label[l.GetName()] = l.GetValue()
			}
			h := m.GetHistogram()
			out = append(out, fmt.Sprintf("%s %s: %d in %vs", label["method"], label["status"], h.GetSampleCount(), h.GetSampleSum()))
		}
	}
	return out
}
