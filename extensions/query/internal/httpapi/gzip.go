package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// minCompressed is the minimum length in bytes of the first part of a compressed response.
const minCompressed = 1 << 10

var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("BUG: gzip level: " + err.Error())
	}
	return w
}}

// Compress compresses responses with gzip for clients that accept it, except short responses,
// errors, parts of files, event streams, and responses that already have an encoding.
//
// It does not use gzhttp of klauspost/compress, whose Flush ignores writers with only Unwrap, and
// which completes the gzip data of a handler that panics.
func Compress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !AcceptsGzip(r.Header) || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		g := &gzipWriter{ResponseWriter: w}
		next.ServeHTTP(g, r)
		g.end() // not after a panic: half a response must not look complete
	})
}

// AcceptsGzip reports whether the Accept-Encoding header of a request includes gzip with a weight
// above 0.
func AcceptsGzip(h http.Header) bool {
	for _, v := range h.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(v, ",") {
			coding, params, _ := strings.Cut(part, ";")
			if c := strings.ToLower(strings.TrimSpace(coding)); c != "gzip" && c != "x-gzip" {
				continue
			}
			name, q, has := strings.Cut(strings.TrimSpace(params), "=")
			weight, err := strconv.ParseFloat(q, 64)
			return !has || !strings.EqualFold(name, "q") || err == nil && weight > 0
		}
	}
	return false
}

// gzipWriter decides from the first part of a response whether to compress it.
type gzipWriter struct {
	http.ResponseWriter
	status int
	begun  bool
	gz     *gzip.Writer // nil if the response is not compressed
}

// WriteHeader notes the status until the first part is written.
func (g *gzipWriter) WriteHeader(status int) {
	if status < http.StatusOK {
		g.ResponseWriter.WriteHeader(status)
	} else if g.status == 0 {
		g.status = status
	}
}

// Write writes a part of the response.
func (g *gzipWriter) Write(p []byte) (int, error) {
	if !g.begun {
		g.beginBody(p)
	}
	if g.gz != nil {
		return g.gz.Write(p)
	}
	return g.ResponseWriter.Write(p)
}

// beginBody decides whether to compress the response, and writes the status.
func (g *gzipWriter) beginBody(first []byte) {
	g.begun = true
	h := g.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", http.DetectContentType(first))
	}
	if len(first) >= minCompressed && (g.status == 0 || g.status == http.StatusOK) && h.Get("Content-Encoding") == "" &&
		compressible(h.Get("Content-Type")) {
		h.Set("Content-Encoding", "gzip")
		h.Del("Content-Length")
		h.Del("Accept-Ranges")
		g.gz = gzipWriters.Get().(*gzip.Writer)
		g.gz.Reset(g.ResponseWriter)
	}
	if g.status != 0 {
		g.ResponseWriter.WriteHeader(g.status)
	}
}

// compressible reports whether to compress responses of a content type.
func compressible(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	switch t {
	case "text/event-stream": // each event is sent immediately
		return false
	case "application/json", "text/javascript", "application/javascript", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(t, "text/")
}

// end completes the response.
func (g *gzipWriter) end() {
	switch {
	case g.gz != nil:
		if g.gz.Close() == nil {
			gzipWriters.Put(g.gz)
		}
	case !g.begun && g.status != 0:
		g.ResponseWriter.WriteHeader(g.status)
	}
}

// Unwrap is for http.ResponseController.
func (g *gzipWriter) Unwrap() http.ResponseWriter { return g.ResponseWriter }
