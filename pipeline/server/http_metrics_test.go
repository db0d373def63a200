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

// Request durations are counted by method and status, also for unknown methods and panics.
func TestRequestDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0).inMemory()
		s, _, _ := f.http(httpConfig(), func(rw http.ResponseWriter, r *http.Request) {
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
		if got := f.durations(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func (f *fixture) durations() (out []string) {
	f.t.Helper()
	families, err := f.reg.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "tracing_server_http_request_duration" {
			continue
		}
		for _, m := range family.GetMetric() {
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
