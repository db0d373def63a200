package webui

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

const indexName = "index.html"

// Texts in index.html that are replaced.
const (
	basePlace = `<base href="/">`
	bootPlace = `<script type="application/json" id="boot">{}</script>`
)

// maxPageBytes is the maximum size of the page.
const maxPageBytes = 4 << 20

// readPage returns the content of a variant of the page, or of index.html if there is no such
// variant.
func (s *Site) readPage(variant string) ([]byte, error) {
	f, compressed, err := s.open(variant)
	if errors.Is(err, fs.ErrNotExist) {
		f, compressed, err = s.open(s.build.index)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the UI's index page: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	var content io.Reader = f
	if compressed {
		if content, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("cannot read the UI's index page: %w", err)
		}
	}
	page, err := io.ReadAll(io.LimitReader(content, maxPageBytes+1))
	if err == nil && len(page) > maxPageBytes {
		err = fmt.Errorf("longer than %d bytes", maxPageBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the UI's index page: %w", err)
	}
	return page, nil
}

// servePage serves a variant of the page with the base path, further tags and the boot data
// inserted.
func (s *Site) servePage(w http.ResponseWriter, r *http.Request, variant, tags string) {
	page, err := s.readPage(variant)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	tags = `<base href="` + publicPrefix(r) + s.options.Base + `/">` + tags
	page = bytes.Replace(page, []byte(basePlace), []byte(tags), 1)
	page = bytes.Replace(page, []byte(bootPlace), fmt.Appendf(nil, `<script type="application/json" id="boot">%s</script>`, s.boot), 1)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Security-Policy", s.policy)
	_, _ = w.Write(page)
}

// publicPrefix returns the prefix that a proxy in front of the server has removed from the path of
// a request, or "". Proxies send it in a header.
func publicPrefix(r *http.Request) string {
	p := strings.TrimRight(r.Header.Get("X-Forwarded-Prefix"), "/")
	if !IsBasePath(p) {
		return ""
	}
	return p
}

// IsBasePath reports whether p can precede the paths of the UI: it begins with a slash, ends
// without one, is clean, and needs no escaping.
func IsBasePath(p string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/"
	return len(p) > 1 && p[0] == '/' && path.Clean(p) == p && strings.Trim(p, allowed) == ""
}

// policy returns the Content-Security-Policy of the page: everything comes from its own origin, and
// there are no scripts or styles within the page.
func policy(frameAncestors []string) string {
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
		"worker-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors " +
		strings.Join(append([]string{"'self'"}, frameAncestors...), " ")
}
