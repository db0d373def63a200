package docsite

import (
	"bytes"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"
)

// policy is the Content-Security-Policy of the site: everything comes from its own origin, and
// there are no scripts or styles within a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'self'"

// Handler serves the documentation in a file system with the files of the repository, below a
// prefix such as "/docs". The web UI is at the parent of the prefix. The site is rendered at the
// first request. Relative links and the redirect from the prefix work behind proxies that remove
// parts of paths.
func Handler(prefix string, repository fs.FS) http.Handler {
	site := sync.OnceValues(func() (*Site, error) { return New(repository, "../") })
	folder := prefix[strings.LastIndexByte(prefix, '/')+1:]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, below := strings.CutPrefix(r.URL.Path, prefix+"/")
		if !below {
			w.Header().Set("Location", folder+"/")
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
		s, err := site()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		serve(w, r, s, name)
	})
}

func serve(w http.ResponseWriter, r *http.Request, s *Site, name string) {
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	f, ok := s.File(name)
	if !ok {
		http.Error(w, "no page of the documentation has this name", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.Type)
	h.Set("Cache-Control", "no-cache") // clients keep the file and ask whether it is current
	h.Set("ETag", "W/"+f.ETag)         // weak: responses may be compressed
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Security-Policy", policy)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.Content))
}
