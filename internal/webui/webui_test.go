package webui

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const page = `<!doctype html><head><base href="/"><script type="application/json" id="boot">{}</script></head>`

const script = "export const x = 1;\n"

func zipped(t *testing.T, text string) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: b.Bytes()}
}

// site returns a Site for a small build below /base.
func site(t *testing.T, ancestors ...string) *Site {
	t.Helper()
	s, err := New(Folder(fstest.MapFS{
		"index.html.gz":           zipped(t, page),
		"pages/status.html.gz":    zipped(t, "status"+page),
		"pages/trace.html.gz":     zipped(t, "trace"+page),
		"pages/service.html.gz":   zipped(t, "service"+page),
		"pages/unknown.html.gz":   zipped(t, "unknown"+page),
		"assets/main-0a1b.js.gz":  zipped(t, script),
		"assets/main-0a1b.css.gz": zipped(t, "a{}"),
		"assets/damaged-1.js.gz":  {Data: []byte("not gzip")},
		"favicon.svg":             {Data: []byte("<svg/>")},
	}), Options{
		Base: "/base", FrameAncestors: ancestors, Boot: map[string]string{"version": "</script>"}, TracePath: "/api/outline/",
		AcceptsGzip: func(r *http.Request) bool { return r.Header.Get("Accept-Encoding") == "gzip" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(s *Site, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// browser is the header Accept of a browser that opens a page.
const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func TestPage(t *testing.T) {
	s := site(t)
	for _, path := range []string{"/base/", "/base/index.html", "/base/search?q=1", "/base/trace/1...2"} {
		w := ask(s, http.MethodGet, path, "Accept", browser)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		const want = `<!doctype html><head><base href="/base/">` +
			`<script type="application/json" id="boot">{"version":"\u003c/script\u003e"}</script></head>`
		if got := w.Body.String(); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// The paths of views have the page for every client. Other paths have it for browsers that open
// them; programs do not get it instead of a response of an API.
func TestFallbackIsForBrowsers(t *testing.T) {
	s := site(t)
	for _, c := range []struct {
		method, path, accept string
		status               int
	}{
		{http.MethodGet, "/base/", "", 200},
		{http.MethodGet, "/base/", "*/*", 200},
		{http.MethodHead, "/base/search", browser, 200},
		{http.MethodGet, "/base/search", "", 200},
		{http.MethodGet, "/base/search", "*/*", 200},
		{http.MethodGet, "/base/search/", "*/*", 200},
		{http.MethodGet, "/base/search", "application/json", 200},
		{http.MethodGet, "/base/trace/1", "*/*", 200},
		{http.MethodGet, "/base/services/a/b", "*/*", 200},
		{http.MethodGet, "/base/searches", "*/*", 404},
		{http.MethodGet, "/base/v1/traces", "", 404},
		{http.MethodGet, "/base/v1/traces", "*/*", 404},
		{http.MethodGet, "/base/v1/traces", "application/json", 404},
		{http.MethodGet, "/base/v1/traces", "image/avif,image/webp,*/*;q=0.8", 404},
		{http.MethodGet, "/base/v1/traces", "Text/HTML;q=0.5", 200},
		{http.MethodPost, "/base/search", browser, 404},
		{http.MethodPost, "/base/", browser, 404},
		{http.MethodGet, "/base/assets/none.js", browser, 404},
		{http.MethodGet, "/base", browser, 404},
		{http.MethodGet, "/search", browser, 404},
	} {
		w := ask(s, c.method, c.path, "Accept", c.accept)
		if w.Code != c.status {
			t.Errorf("%v: %d", c, w.Code)
		}
		// A cache must not give the response for one client to another.
		decides := strings.HasSuffix(c.path, "/v1/traces") || c.path == "/base/searches"
		if h := w.Header(); h.Get("Cache-Control") != "no-store" || decides && h.Get("Vary") != "Accept" {
			t.Errorf("%v: %v", c, h)
		}
	}
}

// TestViews compares the paths of views with those that the UI knows.
func TestViews(t *testing.T) {
	source, err := os.ReadFile("../../ui/src/shell/url.ts")
	if err != nil {
		t.Fatal(err)
	}
	_, parse, _ := strings.Cut(string(source), "function parseRoute(")
	parse, _, _ = strings.Cut(parse, "\n}\n")
	var known []string
	for _, m := range regexp.MustCompile(`case '(\w+)':`).FindAllStringSubmatch(parse, -1) {
		known = append(known, m[1])
	}
	slices.Sort(known)
	if own := slices.Sorted(maps.Keys(views))[1:]; len(known) == 0 || !slices.Equal(known, own) { // without that of ""
		t.Errorf("the UI has the views %q, the server %q", known, own)
	}
}

// Views that have variants of the page get theirs. The variants have no addresses of their own.
func TestVariants(t *testing.T) {
	s := site(t)
	for path, want := range map[string]string{
		"/base/": "", "/base/status": "status", "/base/trace/1": "trace", "/base/trace/1...2": "", "/base/services": "",
		"/base/services/a/b": "service", "/base/x": "unknown", "/base/x/assets/y": "unknown", "/base/pages/trace.html": "unknown",
	} {
		w := ask(s, http.MethodGet, path, "Accept", browser)
		if got := w.Body.String(); w.Code != http.StatusOK || !strings.HasPrefix(got, want+`<!doctype html><head><base href="/base/">`) {
			t.Errorf("%s: %d %s, want variant %q", path, w.Code, got, want)
		}
	}
	if w := ask(s, http.MethodGet, "/base/pages/trace.html"); w.Code != http.StatusNotFound {
		t.Errorf("file of a variant: %d", w.Code)
	}
}

// TestVariantsInTheProgram compares the variants in the embedded build with those that are served.
func TestVariantsInTheProgram(t *testing.T) {
	b := Embedded()
	if b.index != indexName {
		t.Skip("the program is built without the web UI")
	}
	files, err := fs.Glob(b.files, variantFolder+"*")
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"services/a", "trace/1...2"}
	for first := range views {
		paths = append(paths, first)
	}
	served := map[string]bool{variantFolder + unknownView + ".html.gz": true}
	for _, p := range paths {
		variant, _ := variantOf(p)
		served[variantFolder+variant+".html.gz"] = true
	}
	if want := slices.Sorted(maps.Keys(served)); !slices.Equal(files, want) {
		t.Errorf("the build has the variants %q, served are %q", files, want)
	}
}

func TestFiles(t *testing.T) {
	s := site(t)
	const hashed, short = "public, max-age=31536000, immutable", "public, max-age=3600"
	for path, want := range map[string][]string{
		"/base/assets/main-0a1b.js":  {"text/javascript; charset=utf-8", hashed, script},
		"/base/assets/main-0a1b.css": {"text/css; charset=utf-8", hashed, "a{}"},
		"/base/favicon.svg":          {"image/svg+xml", short, "<svg/>"},
	} {
		for _, encoding := range []string{"", "gzip"} {
			w := ask(s, http.MethodGet, path, "Accept-Encoding", encoding)
			h := w.Header()
			if w.Code != http.StatusOK || h.Get("Content-Type") != want[0] || h.Get("Cache-Control") != want[1] ||
				h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %d %v", path, w.Code, h)
			}
			var body io.Reader = w.Body
			if h.Get("Content-Encoding") == "gzip" {
				var err error
				if body, err = gzip.NewReader(w.Body); err != nil {
					t.Fatal(err)
				}
			}
			compressed := strings.HasPrefix(path, "/base/assets/") && encoding == "gzip"
			if b, err := io.ReadAll(body); err != nil || string(b) != want[2] || compressed != (h.Get("Content-Encoding") == "gzip") {
				t.Errorf("%s, encoding %q: %q %v %v", path, encoding, b, err, h)
			}
		}
	}
	if w := ask(s, http.MethodHead, "/base/assets/main-0a1b.js"); w.Code != http.StatusOK || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d, %d bytes", w.Code, w.Body.Len())
	}
	if w := ask(s, http.MethodGet, "/base/assets/damaged-1.js"); w.Code != http.StatusInternalServerError {
		t.Errorf("damaged file: %d", w.Code)
	}
	for _, path := range []string{"/base/assets/", "/base/assets", "/base/assets/main-0a1b.js.gz", "/base/index.html.gz", "/base//favicon.svg",
		"/base/../base/favicon.svg", "/base/favicon.svg/", "/base/%00"} {
		if w := ask(s, http.MethodGet, path, "Accept", "*/*"); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestPolicy(t *testing.T) {
	h := ask(site(t), http.MethodGet, "/base/").Header()
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
			"connect-src 'self'; worker-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'self'",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	h = ask(site(t, "https://a.example", "http://b:1"), http.MethodGet, "/base/").Header()
	if got := h.Get("Content-Security-Policy"); !strings.HasSuffix(got, "; frame-ancestors 'self' https://a.example http://b:1") {
		t.Errorf("got %s", got)
	}
}

// A proxy that removes a prefix from paths sends the prefix in a header.
func TestForwardedPrefix(t *testing.T) {
	s := site(t)
	for prefix, want := range map[string]string{
		"/p": "/p/base/", "/p/q/": "/p/q/base/", "": "/base/", "/": "/base/", "//evil.example": "/base/", "p": "/base/",
		`/"><script>`: "/base/", "/a/../b": "/base/", "https://evil.example": "/base/",
	} {
		w := ask(s, http.MethodGet, "/base/", "X-Forwarded-Prefix", prefix)
		if !strings.Contains(w.Body.String(), `<base href="`+want+`">`) {
			t.Errorf("prefix %q: %s", prefix, w.Body)
		}
	}
}

// The page of a trace loads the trace before its scripts, if the id needs no escaping.
func TestEarlyTrace(t *testing.T) {
	s := site(t)
	id := strings.Repeat("0a", 16)
	for path, want := range map[string]string{
		"trace/0a1b": "./api/outline/0a1b", "trace/" + id: "./api/outline/" + id, "trace/0" + id: "", "trace/0A1B": "", "trace/0a...1b": "", "trace/": "", "trace/0a1b/": "", `trace/0a">`: "", "search": "",
	} {
		r := httptest.NewRequest(http.MethodGet, "/base/", nil)
		r.URL.Path = "/base/" + path
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		tag := `<base href="/base/">` + "\n    " + `<link rel="preload" as="fetch" crossorigin href="` + want + `">`
		if got := w.Body.String(); want != "" && !strings.Contains(got, tag) || want == "" && strings.Contains(got, "/api/") {
			t.Errorf("%s: %s", path, got)
		}
	}
	if s.options.TracePath = ""; strings.Contains(ask(s, http.MethodGet, "/base/trace/0a1b").Body.String(), "preload") {
		t.Error("without a path, a trace is loaded early")
	}
}

func TestOtherBuilds(t *testing.T) {
	f := func(files fstest.MapFS, ours bool, want string) {
		t.Helper()
		_, err := New(Folder(files), Options{})
		if err == nil || errors.Is(err, ErrNotOurs) == ours || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	f(fstest.MapFS{}, true, "cannot read the UI's index page")
	f(fstest.MapFS{"index.html.gz": {Data: []byte("x")}}, true, "cannot read the UI's index page")
	f(fstest.MapFS{"index.html": {Data: bytes.Repeat([]byte("x"), maxPageBytes+1)}}, true, "longer than")
	f(fstest.MapFS{"index.html/x": {}}, true, "cannot read the UI's index page")
	f(fstest.MapFS{"index.html": {Data: []byte(`<base href="/"><script>`)}}, false, "not the page of this web UI")
}

// The builds in the program are complete: every file that the page names can be loaded.
func TestBuildsInTheProgram(t *testing.T) {
	for name, build := range map[string]Build{"embedded": Embedded(), "placeholder": Placeholder()} {
		s, err := New(build, Options{AcceptsGzip: func(*http.Request) bool { return true }})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := ask(s, http.MethodGet, "/").Body.String()
		files := regexp.MustCompile(`(?:src|href)="\./([^"]*\.(?:js|css|svg))"`).FindAllStringSubmatch(text, -1)
		if len(files) < 2 {
			t.Errorf("%s: page names %d files: %s", name, len(files), text)
		}
		for _, f := range files {
			if w := ask(s, http.MethodGet, "/"+f[1]); w.Code != http.StatusOK || w.Body.Len() == 0 {
				t.Errorf("%s: %s: %d", name, f[1], w.Code)
			}
		}
		if inline := regexp.MustCompile(`<script>|<style|style="|onclick=`).FindString(text); inline != "" {
			t.Errorf("%s: the policy forbids %s", name, inline)
		}
	}
}
