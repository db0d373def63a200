package server_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// compressors holds the supported content encodings. The first word of a key is the value of
// Content-Encoding.
var compressors = map[string]func([]byte) []byte{
	"gzip":        stream(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
	"zlib":        stream(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }),
	"deflate":     stream(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }),
	"deflate raw": stream(func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 5); return f }),
	"zstd":        stream(func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }),
	"lz4":         stream(func(w io.Writer) io.WriteCloser { return lz4.NewWriter(w) }),
	"snappy":      func(b []byte) []byte { return snappy.Encode(nil, b) },
	"snappy framed": stream(func(w io.Writer) io.WriteCloser {
		return snappy.NewBufferedWriter(w)
	}),
	"x-snappy-framed": stream(func(w io.Writer) io.WriteCloser { return snappy.NewBufferedWriter(w) }),
}

func stream(open func(io.Writer) io.WriteCloser) func([]byte) []byte {
	return func(b []byte) []byte {
		var out bytes.Buffer
		w := open(&out)
		if _, err := w.Write(b); err != nil {
			panic(err)
		}
		if err := w.Close(); err != nil {
			panic(err)
		}
		return out.Bytes()
	}
}

func header(name string) string { return strings.Fields(name)[0] }

// echo responds with the request body, or with the status and text of the error.
func echo(read func(*http.Request) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, err := read(r)
		if err != nil {
			code, _ := pipeline.HTTPStatus(err)
			http.Error(w, err.Error(), code)
			return
		}
		w.Write(b)
	}
}

func readBody(r *http.Request) ([]byte, error)   { return server.ReadBody(r) }
func readStream(r *http.Request) ([]byte, error) { return io.ReadAll(r.Body) }

func post(t *testing.T, c *http.Client, encoding string, body io.Reader) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server/", body)
	if err != nil {
		t.Fatal(err)
	}
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b
}

func TestBodiesAreDecompressed(t *testing.T) {
	f := newFixture(t, 64<<20)
	_, stream, _ := f.http(httpConfig(), echo(readStream))
	f2 := newFixture(t, 64<<20)
	_, whole, _ := f2.http(httpConfig(), echo(readBody))
	for _, size := range []int{1, 1000, 300_000, 1 << 20} {
		want := bytes.Repeat([]byte("span "), size/5+1)[:size]
		rand.Read(want[:size/2])
		for _, c := range []*http.Client{stream, whole} {
			if code, got := post(t, c, "identity", bytes.NewReader(want)); code != 200 || !bytes.Equal(got, want) {
				t.Errorf("identity, %d bytes: %d, %d bytes", size, code, len(got))
			}
			// Twice, because the second request uses a pooled decoder. Random data may exceed the
			// limit when compressed.
			for name, compress := range compressors {
				compressed := compress(want)
				for range 2 {
					code, got := post(t, c, strings.ToUpper(header(name)), bytes.NewReader(compressed))
					if len(compressed) <= 1<<20 && (code != 200 || !bytes.Equal(got, want)) {
						t.Errorf("%s, %d bytes: %d, %d bytes: %.80s", name, size, code, len(got), got)
					}
				}
			}
		}
	}
	if used := f2.set.Budget.Used(); used != 0 {
		t.Errorf("%d bytes of the budget are still reserved", used)
	}
}

func TestEmptyBody(t *testing.T) {
	f := newFixture(t, 0)
	_, c, _ := f.http(httpConfig(), echo(readBody))
	if code, got := post(t, c, "", nil); code != 200 || len(got) != 0 {
		t.Errorf("got %d %q", code, got)
	}
	for name, compress := range compressors {
		if code, got := post(t, c, header(name), bytes.NewReader(compress(nil))); code != 200 || len(got) != 0 {
			t.Errorf("%s: %d %q", name, code, got)
		}
	}
}

func TestDecompressionBombsAreRefused(t *testing.T) {
	zeros := make([]byte, 16<<20)
	for name, compress := range compressors {
		bomb := compress(zeros)
		for how, read := range map[string]func(*http.Request) ([]byte, error){"whole": readBody, "stream": readStream} {
			f := newFixture(t, 64<<20)
			_, c, _ := f.http(httpConfig(), echo(read))
			code, got := post(t, c, header(name), bytes.NewReader(bomb))
			if code != http.StatusRequestEntityTooLarge || string(got) != "http: request body too large\n" {
				t.Errorf("%s, %s: %d %.80s", name, how, code, got)
			}
			if n := f.refused(server.ReasonTooLarge); n != 1 {
				t.Errorf("%s, %s: counted %v times, want 1", name, how, n)
			}
			// The window of the decoder and two buffers, but not 16 MiB.
			if peak := f.set.Budget.Peak(); peak > 12<<20 {
				t.Errorf("%s, %s: peak reservation %d bytes", name, how, peak)
			}
			if used := f.set.Budget.Used(); used != 0 {
				t.Errorf("%s, %s: %d bytes are still reserved", name, how, used)
			}
		}
	}
}

func TestCorruptBodiesAreRefused(t *testing.T) {
	f := newFixture(t, 64<<20)
	_, c, _ := f.http(httpConfig(), echo(readBody))
	refused := 0.0
	for name, compress := range compressors {
		compressed := compress(bytes.Repeat([]byte("spans"), 1000))
		for what, b := range map[string][]byte{"cut": compressed[:len(compressed)-3],
			"garbage": []byte("\x99no such thing, not at all"), "empty": nil} {
			code, got := post(t, c, header(name), bytes.NewReader(b))
			if what == "empty" && code == 200 && len(got) == 0 {
				continue // an empty stream is valid in some formats
			}
			refused++
			if code != http.StatusBadRequest || f.refused(server.ReasonEncoding) != refused {
				t.Errorf("%s, %s: %d %s", name, what, code, got)
			}
		}
	}
	if code, got := post(t, c, "br", strings.NewReader("x")); code != 400 || string(got) != "unsupported Content-Encoding: br\n" {
		t.Errorf("br: %d %s", code, got)
	}
}

// Trailing data would be lost silently, and a client could send it without end.
func TestTrailingDataIsRefused(t *testing.T) {
	for _, tail := range []string{"x", "never sent"} {
		for name, compress := range compressors {
			if tail != "x" && name == "snappy" {
				continue // the block format has no end marker
			}
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, 64<<20).inMemory()
				_, c, _ := f.http(httpConfig(), echo(readBody))
				want := http.StatusBadRequest
				body := io.MultiReader(bytes.NewReader(compress([]byte("spans"))), strings.NewReader(tail))
				if tail != "x" {
					r, end := io.Pipe()
					defer end.Close()
					body, want = io.MultiReader(bytes.NewReader(compress([]byte("spans"))), r), http.StatusServiceUnavailable
				}
				if code, got := post(t, c, header(name), body); code != want {
					t.Errorf("%s, %s: %d %s", name, tail, code, got)
				}
			})
		}
	}
}

func TestTooLargeBodies(t *testing.T) {
	f := newFixture(t, 0)
	_, c, _ := f.http(httpConfig(), echo(readBody))
	large := make([]byte, 1<<20+1)
	rand.Read(large)
	for what, r := range map[string]io.Reader{"announced": bytes.NewReader(large), "chunked": io.MultiReader(bytes.NewReader(large))} {
		if code, got := post(t, c, "", r); code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %.80s", what, code, got)
		}
	}
	if code, _ := post(t, c, "gzip", bytes.NewReader(compressors["gzip"](large))); code != http.StatusRequestEntityTooLarge {
		t.Errorf("compressed: %d", code)
	}
	if n := f.refused(server.ReasonTooLarge); n != 3 {
		t.Errorf("counted %v refusals, want 3", n)
	}
}

func TestBudgetIsChargedBeforeReading(t *testing.T) {
	f := newFixture(t, 8<<20)
	reserved := make(chan int64, 1)
	_, c, _ := f.http(httpConfig(), func(rw http.ResponseWriter, r *http.Request) {
		_, err := server.ReadBody(r)
		reserved <- f.set.Budget.Used()
		var refusal *server.Refusal
		if err != nil && !errors.As(err, &refusal) {
			t.Errorf("error is not a Refusal: %v", err)
		}
		code, after := pipeline.HTTPStatus(err)
		if err != nil && after <= 0 {
			t.Error("no retry delay")
		}
		rw.WriteHeader(code)
	})
	body := make([]byte, 1<<20)
	if code, _ := post(t, c, "", bytes.NewReader(body)); code != 200 {
		t.Fatalf("%d", code)
	}
	if n := <-reserved; n < 1<<20 || n > 1<<20+1 {
		t.Errorf("%d bytes reserved for a body of 1 MiB", n)
	}
	all, err := f.set.Budget.Reserve(8<<20 - 1000)
	if err != nil {
		t.Fatal(err)
	}
	if code, _ := post(t, c, "", bytes.NewReader(body)); code != http.StatusTooManyRequests {
		t.Errorf("over budget: %d", code)
	}
	if n := <-reserved; n != 8<<20-1000 {
		t.Errorf("%d bytes reserved after a refused request", n)
	}
	all.Release()
	if code, _ := post(t, c, "", bytes.NewReader(body)); code != 200 || f.refused(server.ReasonOverBudget) != 1 {
		t.Errorf("budget free again: %d, refused %v", code, f.refused(server.ReasonOverBudget))
	}
}
