package query

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

func askEncoded(h http.Handler, target, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Accept-Encoding", accept)
	return querytest.Record(h, r)
}

func TestCompressedAnswers(t *testing.T) {
	h, _ := api(t, querytest.NewStore(querytest.Big()))
	for _, path := range []string{"/api/traces?service=svc", "/api/traces/1", "/api/v3/traces/1", "/api/traces/1?prettyPrint=true"} {
		plain := querytest.Ask(t, h, http.MethodGet, path)
		if plain.Header().Get("Content-Encoding") != "" || plain.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: headers %v", path, plain.Header())
		}
		w := askEncoded(h, path, "br, gzip;q=0.5")
		if w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Content-Type") != "application/json" ||
			w.Body.Len() > plain.Body.Len()/2 {
			t.Fatalf("%s: %d of %d bytes, headers %v", path, w.Body.Len(), plain.Body.Len(), w.Header())
		}
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plain.Body.Bytes()) {
			t.Errorf("%s: answer differs from the uncompressed one, %v", path, err)
		}
	}
}

func TestNotCompressed(t *testing.T) {
	h, _ := api(t, querytest.NewStore(querytest.Big()))
	for path, status := range map[string]int{"/api/services": 200, "/api/traces/77": 404, "/api/x": 404} {
		if w := askEncoded(h, path, "gzip"); w.Header().Get("Content-Encoding") != "" || w.Code != status || w.Body.Len() == 0 {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	for _, accept := range []string{"", "br", "gzip;q=0", "gzip; q=0.0", "gzip;q=x", "identity, gzippy"} {
		if w := askEncoded(h, "/api/traces/1", accept); w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%q: compressed", accept)
		}
	}
	nothing := httpapi.Compress(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }))
	if w := askEncoded(nothing, "/", "gzip"); w.Code != http.StatusNotModified {
		t.Errorf("status %d of an answer without a body", w.Code)
	}
}
