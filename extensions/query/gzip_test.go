package query

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func zipped(h http.Handler, target, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Accept-Encoding", accept)
	return record(h, r)
}

func TestCompressedAnswers(t *testing.T) {
	h, _ := api(t, newFakeStore(big()))
	for _, path := range []string{"/api/traces?service=svc", "/api/traces/1", "/api/v3/traces/1", "/api/traces/1?prettyPrint=true"} {
		plain := ask(t, h, http.MethodGet, path)
		if plain.Header().Get("Content-Encoding") != "" || plain.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: headers %v", path, plain.Header())
		}
		w := zipped(h, path, "br, gzip;q=0.5")
		if w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Content-Type") != "application/json" || w.Body.Len() > plain.Body.Len()/2 {
			t.Fatalf("%s: %d of %d bytes, headers %v", path, w.Body.Len(), plain.Body.Len(), w.Header())
		}
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plain.Body.Bytes()) {
			t.Errorf("%s: another answer, %v", path, err)
		}
	}
}

func TestAnswersThatAreNotCompressed(t *testing.T) {
	h, _ := api(t, newFakeStore(big()))
	for path, status := range map[string]int{"/api/services": 200, "/api/traces/77": 404, "/api/x": 404, "/": 200} {
		if w := zipped(h, path, "gzip"); w.Header().Get("Content-Encoding") != "" || w.Code != status || w.Body.Len() == 0 {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	for _, accept := range []string{"", "br", "gzip;q=0", "gzip; q=0.0", "gzip;q=x", "identity, gzippy"} {
		if w := zipped(h, "/api/traces/1", accept); w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%q: compressed", accept)
		}
	}
	nothing := compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }))
	if w := zipped(nothing, "/", "gzip"); w.Code != http.StatusNotModified {
		t.Errorf("%d without a body", w.Code)
	}
}

// widest is a client that notes the longest part of an answer.
type widest struct {
	discard
	bytes int
}

func (w *widest) Write(p []byte) (int, error) {
	w.bytes = max(w.bytes, len(p))
	return len(p), nil
}

// Indenting values that lie deep in each other takes memory for a part of them at a time.
func TestDeepValuesIndented(t *testing.T) {
	const depth, elements = 200, 50_000
	w := &widest{discard: discard{http.Header{}}}
	s := newStream(w, httptest.NewRequest(http.MethodGet, "/?prettyPrint=true", nil))
	defer s.close()
	s.buf = append(s.buf, strings.Repeat("[", depth)+strings.Repeat("1,", elements)+"1"+strings.Repeat("]", depth)...)
	if err := s.flush(); err != nil || w.bytes > 8<<20 {
		t.Errorf("%d MiB at once, %v", w.bytes>>20, err)
	}
}

// FuzzIndent compares with the standard library, whatever the parts in which the JSON comes.
func FuzzIndent(f *testing.F) {
	for _, s := range []string{`{"a":[],"b":{},"c":[1,"x\"]\\",{"d":null}]}`, `[]`, `"\\\""`, `[[[{}]],true]`, `{"":{"":[""]}}`} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, part int) {
		var in, want bytes.Buffer
		if json.Compact(&in, []byte(s)) != nil || json.Indent(&want, in.Bytes(), "", "    ") != nil {
			return
		}
		var n indenter
		var got []byte
		for rest := in.Bytes(); len(rest) > 0; {
			size := min(max(part, 1), len(rest))
			got = n.appendTo(got, rest[:size])
			rest = rest[size:]
		}
		if string(got) != strings.TrimSpace(want.String()) {
			t.Errorf("got %s, want %s", got, want.String())
		}
	})
}
