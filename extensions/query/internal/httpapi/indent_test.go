package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// maxWriter notes the maximum length of a write.
type maxWriter struct {
	headers http.Header
	bytes   int
}

func (w *maxWriter) Header() http.Header { return w.headers }
func (w *maxWriter) WriteHeader(int)     {}
func (w *maxWriter) Write(p []byte) (int, error) {
	w.bytes = max(w.bytes, len(p))
	return len(p), nil
}

// Deeply nested values are indented in parts, so that the indentation takes little memory.
func TestDeepValuesIndented(t *testing.T) {
	const depth, elements = 200, 50_000
	w := &maxWriter{headers: http.Header{}}
	s := NewStream(w, httptest.NewRequest(http.MethodGet, "/?prettyPrint=true", nil))
	defer s.Close()
	s.Buf = append(s.Buf, strings.Repeat("[", depth)+strings.Repeat("1,", elements)+"1"+strings.Repeat("]", depth)...)
	if err := s.Flush(); err != nil || w.bytes > 8<<20 {
		t.Errorf("write of %d MiB, %v", w.bytes>>20, err)
	}
}

// FuzzIndent compares with json.Indent, for parts of any length.
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
