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

// widest is a client that notes the longest part of an answer.
type widest struct {
	headers http.Header
	bytes   int
}

func (w *widest) Header() http.Header { return w.headers }
func (w *widest) WriteHeader(int)     {}
func (w *widest) Write(p []byte) (int, error) {
	w.bytes = max(w.bytes, len(p))
	return len(p), nil
}

// Indenting values that lie deep in each other takes memory for a part of them at a time.
func TestDeepValuesIndented(t *testing.T) {
	const depth, elements = 200, 50_000
	w := &widest{headers: http.Header{}}
	s := NewStream(w, httptest.NewRequest(http.MethodGet, "/?prettyPrint=true", nil))
	defer s.Close()
	s.Buf = append(s.Buf, strings.Repeat("[", depth)+strings.Repeat("1,", elements)+"1"+strings.Repeat("]", depth)...)
	if err := s.Flush(); err != nil || w.bytes > 8<<20 {
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
