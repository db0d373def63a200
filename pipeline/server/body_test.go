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

// packers are the content encodings, by a name for the test that begins with the header's value.
var packers = map[string]func([]byte) []byte{
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

func header(packer string) string { return strings.Fields(packer)[0] }

// echo answers with the body, or with the status that fits the error and the error.
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

func TestBodiesAreDecoded(t *testing.T) {
	w := newWorld(t, 64<<20)
	_, stream, _ := w.http(httpConfig(), echo(readStream))
	w2 := newWorld(t, 64<<20)
	_, whole, _ := w2.http(httpConfig(), echo(readBody))
	for _, size := range []int{1, 1000, 300_000, 1 << 20} {
		want := bytes.Repeat([]byte("span "), size/5+1)[:size]
		rand.Read(want[:size/2])
		for _, c := range []*http.Client{stream, whole} {
			if code, got := post(t, c, "identity", bytes.NewReader(want)); code != 200 || !bytes.Equal(got, want) {
				t.Errorf("identity, %d bytes: %d, %d bytes", size, code, len(got))
			}
			// Twice, since the second use gets a decoder from the pool. What does not compress is larger than the limit on the wire.
			for name, pack := range packers {
				packed := pack(want)
				for range 2 {
					code, got := post(t, c, strings.ToUpper(header(name)), bytes.NewReader(packed))
					if len(packed) <= 1<<20 && (code != 200 || !bytes.Equal(got, want)) {
						t.Errorf("%s, %d bytes: %d, %d bytes: %.80s", name, size, code, len(got), got)
					}
				}
			}
		}
	}
	if used := w2.set.Budget.Used(); used != 0 {
		t.Errorf("%d bytes of the budget are still held", used)
	}
}

func TestEmptyBody(t *testing.T) {
	w := newWorld(t, 0)
	_, c, _ := w.http(httpConfig(), echo(readBody))
	if code, got := post(t, c, "", nil); code != 200 || len(got) != 0 {
		t.Errorf("got %d %q", code, got)
	}
	for name, pack := range packers {
		if code, got := post(t, c, header(name), bytes.NewReader(pack(nil))); code != 200 || len(got) != 0 {
			t.Errorf("%s: %d %q", name, code, got)
		}
	}
}

func TestBombsAreRefused(t *testing.T) {
	zeros := make([]byte, 16<<20)
	for name, pack := range packers {
		bomb := pack(zeros)
		for how, read := range map[string]func(*http.Request) ([]byte, error){"whole": readBody, "stream": readStream} {
			w := newWorld(t, 64<<20)
			_, c, _ := w.http(httpConfig(), echo(read))
			code, got := post(t, c, header(name), bytes.NewReader(bomb))
			if code != http.StatusRequestEntityTooLarge || string(got) != "http: request body too large\n" {
				t.Errorf("%s, %s: %d %.80s", name, how, code, got)
			}
			if n := w.refused(server.ReasonTooLarge); n != 1 {
				t.Errorf("%s, %s: counted %v times", name, how, n)
			}
			// The decoder's window, two buffers of the limit, and nothing like the 16 MiB.
			if peak := w.set.Budget.Peak(); peak > 12<<20 {
				t.Errorf("%s, %s: %d bytes were held", name, how, peak)
			}
			if used := w.set.Budget.Used(); used != 0 {
				t.Errorf("%s, %s: %d bytes are still held", name, how, used)
			}
		}
	}
}

func TestBrokenBodiesAreRefused(t *testing.T) {
	w := newWorld(t, 64<<20)
	_, c, _ := w.http(httpConfig(), echo(readBody))
	refused := 0.0
	for name, pack := range packers {
		packed := pack(bytes.Repeat([]byte("spans"), 1000))
		for what, b := range map[string][]byte{"cut": packed[:len(packed)-3], "garbage": []byte("\x99no such thing, not at all"), "empty": nil} {
			code, got := post(t, c, header(name), bytes.NewReader(b))
			if what == "empty" && code == 200 && len(got) == 0 {
				continue // formats in which nothing is nothing
			}
			refused++
			if code != http.StatusBadRequest || w.refused(server.ReasonEncoding) != refused {
				t.Errorf("%s, %s: %d %s", name, what, code, got)
			}
		}
	}
	if code, got := post(t, c, "br", strings.NewReader("x")); code != 400 || string(got) != "unsupported Content-Encoding: br\n" {
		t.Errorf("br: %d %s", code, got)
	}
}

// TestNothingMayFollowTheCompressedData: it would be lost, and a client that never ends it would not be noticed.
func TestNothingMayFollowTheCompressedData(t *testing.T) {
	for _, tail := range []string{"x", "never sent"} {
		for name, pack := range packers {
			if tail != "x" && name == "snappy" {
				continue // has no end of its own
			}
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 64<<20).inMemory()
				_, c, _ := w.http(httpConfig(), echo(readBody))
				want := http.StatusBadRequest
				body := io.MultiReader(bytes.NewReader(pack([]byte("spans"))), strings.NewReader(tail))
				if tail != "x" {
					r, end := io.Pipe()
					defer end.Close()
					body, want = io.MultiReader(bytes.NewReader(pack([]byte("spans"))), r), http.StatusServiceUnavailable
				}
				if code, got := post(t, c, header(name), body); code != want {
					t.Errorf("%s, %s: %d %s", name, tail, code, got)
				}
			})
		}
	}
}

func TestTooLargeBodies(t *testing.T) {
	w := newWorld(t, 0)
	_, c, _ := w.http(httpConfig(), echo(readBody))
	large := make([]byte, 1<<20+1)
	rand.Read(large)
	for what, r := range map[string]io.Reader{"announced": bytes.NewReader(large), "chunked": io.MultiReader(bytes.NewReader(large))} {
		if code, got := post(t, c, "", r); code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %.80s", what, code, got)
		}
	}
	if code, _ := post(t, c, "gzip", bytes.NewReader(packers["gzip"](large))); code != http.StatusRequestEntityTooLarge {
		t.Errorf("compressed: %d", code)
	}
	if n := w.refused(server.ReasonTooLarge); n != 3 {
		t.Errorf("counted %v", n)
	}
}

func TestBudgetIsAskedBeforeReading(t *testing.T) {
	w := newWorld(t, 8<<20)
	held := make(chan int64, 1)
	_, c, _ := w.http(httpConfig(), func(rw http.ResponseWriter, r *http.Request) {
		_, err := server.ReadBody(r)
		held <- w.set.Budget.Used()
		var refusal *server.Refusal
		if err != nil && !errors.As(err, &refusal) {
			t.Errorf("not a refusal: %v", err)
		}
		code, after := pipeline.HTTPStatus(err)
		if err != nil && after <= 0 {
			t.Error("no delay to retry after")
		}
		rw.WriteHeader(code)
	})
	body := make([]byte, 1<<20)
	if code, _ := post(t, c, "", bytes.NewReader(body)); code != 200 {
		t.Fatalf("%d", code)
	}
	if n := <-held; n < 1<<20 || n > 1<<20+1 {
		t.Errorf("%d bytes were held for a body of 1 MiB", n)
	}
	all, err := w.set.Budget.Reserve(8<<20 - 1000)
	if err != nil {
		t.Fatal(err)
	}
	if code, _ := post(t, c, "", bytes.NewReader(body)); code != http.StatusTooManyRequests {
		t.Errorf("over budget: %d", code)
	}
	if n := <-held; n != 8<<20-1000 {
		t.Errorf("%d bytes were held by a request that was not read", n)
	}
	all.Release()
	if code, _ := post(t, c, "", bytes.NewReader(body)); code != 200 || w.refused(server.ReasonOverBudget) != 1 {
		t.Errorf("budget free again: %d, refused %v", code, w.refused(server.ReasonOverBudget))
	}
}
