package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// compressFrom is how long an answer, or its first part, must be to be compressed.
const compressFrom = 1 << 10

// gzips holds compressors.
var gzips = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("BUG: the level exists: " + err.Error())
	}
	return w
}}

// compressed answers clients that accept it with gzip, except for short answers, parts of files, and what is compressed already.
func Compress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !acceptsGzip(r.Header.Values("Accept-Encoding")) || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		g := &gzipWriter{ResponseWriter: w}
		next.ServeHTTP(g, r)
		g.end() // not when the handler panicked: half an answer must not look whole
	})
}

func acceptsGzip(values []string) bool {
	for _, v := range values {
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

// gzipWriter decides with the first part of an answer whether to compress it.
type gzipWriter struct {
	http.ResponseWriter
	status int
	begun  bool
	gz     *gzip.Writer // nil: as it is
}

// WriteHeader notes the status until the answer begins.
func (g *gzipWriter) WriteHeader(status int) {
	if status < http.StatusOK {
		g.ResponseWriter.WriteHeader(status)
	} else if g.status == 0 {
		g.status = status
	}
}

// Write sends a part of the answer.
func (g *gzipWriter) Write(p []byte) (int, error) {
	if !g.begun {
		g.begin(p)
	}
	if g.gz != nil {
		return g.gz.Write(p)
	}
	return g.ResponseWriter.Write(p)
}

func (g *gzipWriter) begin(first []byte) {
	g.begun = true
	h := g.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", http.DetectContentType(first))
	}
	if len(first) >= compressFrom && (g.status == 0 || g.status == http.StatusOK) && h.Get("Content-Encoding") == "" &&
		compressible(h.Get("Content-Type")) {
		h.Set("Content-Encoding", "gzip")
		h.Del("Content-Length")
		h.Del("Accept-Ranges")
		g.gz = gzips.Get().(*gzip.Writer)
		g.gz.Reset(g.ResponseWriter)
	}
	if g.status != 0 {
		g.ResponseWriter.WriteHeader(g.status)
	}
}

func compressible(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	switch t {
	case "text/event-stream": // goes out event by event
		return false
	case "application/json", "text/javascript", "application/javascript", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(t, "text/")
}

// end ends the answer.
func (g *gzipWriter) end() {
	switch {
	case g.gz != nil:
		if g.gz.Close() == nil { // else the client is gone
			gzips.Put(g.gz)
		}
	case !g.begun && g.status != 0:
		g.ResponseWriter.WriteHeader(g.status)
	}
}

// Unwrap lets http.ResponseController find deadlines.
func (g *gzipWriter) Unwrap() http.ResponseWriter { return g.ResponseWriter }
