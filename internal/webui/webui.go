// Package webui serves the web UI: its page, and the files that the page loads. They need no
// credentials, because they contain no user data; the page requests data from the APIs.
//
// The sources are in the folder ui. `make ui` builds them into the folder dist, where every file is
// compressed. The built files are not in the repository. Without them, it serves a placeholder page
// that says how to get the UI.
package webui

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed all:dist
var dist embed.FS

//go:embed placeholder.html placeholder.css placeholder.js placeholder.svg
var placeholder embed.FS

// Build is a build of the UI: the page and the files that it loads, compressed (with the extension
// .gz) or not. In the folder pages, it can have variants of the page for views, which load early
// what the view needs.
type Build struct {
	files fs.FS
	index string // name of the page
}

// Embedded returns the build that is embedded in the program, or the placeholder if there is none.
func Embedded() Build {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	if _, err = fs.Stat(files, indexName+".gz"); err != nil {
		return Placeholder()
	}
	return Folder(files)
}

// Placeholder returns a page that stands in for the UI.
func Placeholder() Build { return Build{placeholder, "placeholder.html"} }

// Folder returns the build in a folder. Its files are read for each request.
func Folder(files fs.FS) Build { return Build{files, indexName} }

// Options are the settings of a Site.
type Options struct {
	Base           string   // path that precedes all paths: "" or, for example, "/tracing"
	FrameAncestors []string // origins whose pages may embed the UI, in addition to its own
	Boot           any      // data that the page has before its first request, as JSON; everyone can read it

	// TracePath is the path below Base of the data of a trace, without its id, which the pages of
	// traces load early. It is empty if requests need credentials or a tenant.
	TracePath string

	// Preview returns what chat programs show beside a link to a trace, by its id; ok is false if
	// there is nothing. Everyone can read it. Nil provides no previews.
	Preview func(r *http.Request, trace string) (p Preview, ok bool)

	// AcceptsGzip reports whether the client of a request accepts gzip.
	AcceptsGzip func(*http.Request) bool
}

// Preview describes a page in Open Graph tags (https://ogp.me).
type Preview struct{ Title, Text string }

// Site serves a build of the UI. Its methods are safe for concurrent use.
type Site struct {
	build   Build
	options Options
	boot    []byte
	policy  string
}

// New returns a Site for a build. It fails if the page cannot be read, or with [ErrNotOurs] if it
// belongs to another UI.
func New(b Build, o Options) (*Site, error) {
	boot, err := json.Marshal(o.Boot)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the boot data: %w", err)
	}
	s := &Site{build: b, options: o, boot: boot, policy: policy(o.FrameAncestors)}
	page, err := s.readPage(s.build.index)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(page, []byte(bootPlace)) || !bytes.Contains(page, []byte(basePlace)) {
		return nil, ErrNotOurs
	}
	return s, nil
}

// ErrNotOurs is the error for a build of another UI.
var ErrNotOurs = errors.New("index.html is not the page of this web UI")

// variantFolder holds the variants of the page.
const variantFolder = "pages/"

// unknownView is the variant of the page for paths of no view.
const unknownView = "unknown"

// views are the first parts of the paths of views, as in ui/src/shell/url.ts, with the names of
// their variants of the page.
var views = map[string]string{
	"": "overview", "search": "explore", "trace": "trace", "services": "services", "monitor": "services", "dependencies": "map",
	"open": "open", "status": "status", "errors": "errors", "sampling": "sampling",
}

// variantOf returns the variant of the page for a path below the base; ok is false if the path is
// not that of a view.
func variantOf(name string) (variant string, ok bool) {
	first, rest, _ := strings.Cut(name, "/")
	variant, ok = views[first]
	switch {
	case first == "" && name != "":
		return "", false // a path with two slashes
	case first == "services" && rest != "":
		variant = "service"
	case first == "trace" && strings.Contains(rest, "..."):
		variant = "compare"
	}
	return variant, ok
}

// ServeHTTP serves the files of the build, and the page for the paths of views, because the UI
// selects the view in the browser. For other paths, only browsers that open them get the page,
// which says that there is no such view: a program must not mistake it for an API response.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, below := strings.CutPrefix(r.URL.Path, s.options.Base+"/")
	variant, isView := variantOf(name)
	switch {
	case !below || r.Method != http.MethodGet && r.Method != http.MethodHead:
		notFound(w, r)
	case isView:
		s.servePage(w, r, variantFolder+variant+".html", s.traceTags(r, name))
	case name == s.build.index:
		s.servePage(w, r, s.build.index, "")
	case s.serveFile(w, r, name):
	case strings.HasPrefix(name, hashedFolder):
		notFound(w, r)
	default:
		w.Header().Add("Vary", "Accept")
		if acceptsHTML(r) {
			s.servePage(w, r, variantFolder+unknownView+".html", "")
			return
		}
		notFound(w, r)
	}
}

// maxTraceID is the maximum length of the id of a trace.
const maxTraceID = 32

// traceTags returns the tags in the head of the page of a trace: a link to what the page requests
// first, which the browser then requests before it runs scripts, and a preview. The UI requests the
// same for ids in lower case. Other pages have none.
func (s *Site) traceTags(r *http.Request, name string) (tags string) {
	id, isTrace := strings.CutPrefix(name, "trace/")
	if !isTrace || id == "" || len(id) > maxTraceID || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	if s.options.TracePath != "" {
		tags = "\n    " + `<link rel="preload" as="fetch" crossorigin href=".` + s.options.TracePath + id + `">`
	}
	if s.options.Preview == nil {
		return tags
	}
	p, ok := s.options.Preview(r, id)
	if !ok {
		return tags
	}
	for _, tag := range [][2]string{{"type", "website"}, {"site_name", "tracing"}, {"title", p.Title}, {"description", p.Text}} {
		tags += "\n    " + `<meta property="og:` + tag[0] + `" content="` + html.EscapeString(tag[1]) + `">`
	}
	return tags
}

// notFound responds with 404, which caches must not keep.
func notFound(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	http.NotFound(w, r)
}

// acceptsHTML reports whether a request names HTML as an acceptable answer, as browsers do when
// they open a page. Programs, and requests for images or scripts, accept everything or other types.
func acceptsHTML(r *http.Request) bool {
	for _, v := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(v, ",") {
			mediaType, _, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(mediaType), "text/html") {
				return true
			}
		}
	}
	return false
}

// hashedFolder holds the files whose names contain a hash of their content.
const hashedFolder = "assets/"

// serveFile serves a file of the build. It returns false if there is none.
func (s *Site) serveFile(w http.ResponseWriter, r *http.Request, name string) bool {
	if !fs.ValidPath(name) || path.Ext(name) == ".gz" || strings.HasPrefix(name, variantFolder) {
		return false
	}
	f, compressed, err := s.open(name)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	h := w.Header()
	h.Set("Content-Type", contentType(name))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "public, max-age=3600")
	if strings.HasPrefix(name, hashedFolder) {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	var content io.Reader = f
	switch {
	case compressed && s.options.AcceptsGzip(r):
		h.Set("Content-Encoding", "gzip")
	case compressed:
		if content, err = gzip.NewReader(f); err != nil {
			http.Error(w, "damaged file in the build of the web UI", http.StatusInternalServerError)
			return true
		}
	}
	if r.Method == http.MethodGet {
		if _, err = io.Copy(w, content); err != nil {
			panic(http.ErrAbortHandler) // a part must not look like the whole file
		}
	}
	return true
}

// open opens a file of the build, and reports whether it is compressed.
func (s *Site) open(name string) (f fs.File, compressed bool, err error) {
	if f, err = openRegular(s.build.files, name+".gz"); err == nil {
		return f, true, nil
	}
	f, err = openRegular(s.build.files, name)
	return f, false, err
}

// openRegular opens a file that is not a folder.
func openRegular(files fs.FS, name string) (fs.File, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// contentType returns the media type of a file. It does not use package mime, whose types depend on
// the host.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".txt":
		return "text/plain; charset=utf-8"
	case ".json", ".map":
		return "application/json"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".woff2":
		return "font/woff2"
	}
	return "application/octet-stream"
}
