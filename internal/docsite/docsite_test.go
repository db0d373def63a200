package docsite

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// repository is a small repository.
func repository() fstest.MapFS {
	files := map[string]string{
		"README.md": "# Project\n\nRead [the store](docs/store.md#4-is-it-full), [docs/store.md](docs/store.md) or " +
			"[store.md](docs/store.md#4-is-it-full).\n",
		"docs/README.md": "# Documentation\n\n## Guides\n\n- [store.md](store.md): about the store\n- [project](../README.md)\n" +
			"- [example](../examples/one)\n\n## Empty\n\nText.\n",
		"docs/store.md": "# The store\n\nPressure [home](README.md) ![chart](images/a.webp) [code](../examples/one) <https://example.com>\n\n" +
			"## 4. Is it *full*?\n\nCheck `max_size` often.\n\n## 4. Is it full?\n\n| a | b |\n|--:|---|\n| 1 | 2 |\n\n```yaml\nretention: 72h\n```\n",
		"docs/store/files.md":        "# Files\n",
		"docs/deploy/docker.md":      "# Docker\n\n[store](../store.md) and [agent](../../config-examples/agent.yaml)\n",
		"docs/images/a.webp":         "image",
		"config-examples/agent.yaml": "receivers: {}\n",
		"internal/secret.md":         "# not part of the site\n",
		"ui/src/shell/tokens.css":    ":root { --bg: white; }\n",
		"ui/public/favicon.svg":      "icon",
	}
	fs := fstest.MapFS{}
	for name, text := range files {
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

func newSite(t *testing.T) *Site {
	t.Helper()
	s, err := New(repository(), "../")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// content returns a file of a site, which must exist.
func content(t *testing.T, s *Site, name string) string {
	t.Helper()
	f, ok := s.File(name)
	if !ok {
		t.Fatalf("no file %s; the files are %q", name, s.Names())
	}
	return string(f.Content)
}

func TestNames(t *testing.T) {
	want := []string{
		"README.html", "config-examples/agent.yaml.html", "deploy/docker.html", "favicon.svg", "images/a.webp", "index.html",
		"search-index.js", "site.css", "site.js", "store.html", "store/files.html", "tokens.css",
	}
	if got := newSite(t).Names(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPages(t *testing.T) {
	s := newSite(t)
	for name, wants := range map[string][]string{
		"README.html": {`<title>Project - tracing</title>`, `<a href="store.html#4-is-it-full">the store</a>`,
			`<a href="store.html">The store</a> or <a href="store.html#4-is-it-full">The store, 4. Is it full?</a>`},
		"store.html": {
			`<a href="index.html">home</a>`, `<img src="images/a.webp" alt="chart">`, `<a href="https://example.com">`,
			`<em data-path="examples/one" title="examples/one in the repository">code</em>`,
			`<h2 id="4-is-it-full">`, `<h2 id="4-is-it-full-1">`, `<td align="right">1</td>`, `<a class="home" href="../">`,
			`<li><a href="store.html" aria-current="page">The store</a></li>`, `<li><a href="README.html">Project</a></li>`,
			`<li><a href="#4-is-it-full-1">4. Is it full?</a></li>`, `<pre tabindex="0"><code class="language-yaml">retention: 72h`,
		},
		"deploy/docker.html": {
			`<a href="../store.html">store</a>`, `<a href="../config-examples/agent.yaml.html">agent</a>`, `href="../site.css"`,
			`<body data-root="../">`, `<a class="home" href="../../">`, `<li><a href="../store.html">The store</a></li>`,
		},
		"store/files.html":                {`<li><a href="../store.html" aria-current="true">The store</a></li>`},
		"config-examples/agent.yaml.html": {"receivers: {}", `<title>config-examples/agent.yaml - tracing</title>`},
	} {
		page := content(t, s, name)
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %s in\n%s", name, want, page)
			}
		}
		if open := strings.Count(page, `<details name="pages" open>`); open != 1 {
			t.Errorf("%s: %d groups are open", name, open)
		}
		if strings.Contains(page, "<summary>Empty</summary>") || strings.Contains(page, "style=") {
			t.Errorf("%s: an empty group or a style in\n%s", name, page)
		}
	}
}

// The index leads from words to the sections that have them.
func TestSearchIndex(t *testing.T) {
	script := content(t, newSite(t), "search-index.js")
	text, prefix := strings.CutPrefix(script, "searchIndexLoaded(")
	text, suffix := strings.CutSuffix(text, ");\n")
	var x index
	if err := json.Unmarshal([]byte(text), &x); err != nil || !prefix || !suffix {
		t.Fatalf("%v in %s", err, script)
	}
	for word, want := range map[string][]string{
		"max_size":  {"store.html#4-is-it-full"},
		"retention": {"store.html#4-is-it-full-1"},
		"full":      {"store.html#4-is-it-full", "store.html#4-is-it-full-1"},
		"pressure":  {"store.html#"},
		"x":         nil,
	} {
		var got []string
		section := 0
		for _, distance := range x.Words[word] {
			section += distance
			got = append(got, x.Pages[x.Sections[section].Page][0]+"#"+x.Sections[section].ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

func TestHandler(t *testing.T) {
	h := Handler("/base/docs", repository())
	ask := func(path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for path, status := range map[string]int{
		"/base/docs": 301, "/base/docs/": 200, "/base/docs/index.html": 200, "/base/docs/deploy/docker.html": 200,
		"/base/docs/site.js": 200, "/base/docs/none.html": 404, "/base/docs/deploy/": 404, "/base/docs/../README.md": 404,
	} {
		if w := ask(path); w.Code != status {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, status, w.Body)
		}
	}
	if got := ask("/base/docs").Header().Get("Location"); got != "docs/" {
		t.Errorf("redirected to %q", got)
	}
	first := ask("/base/docs/store.html")
	for key, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": policy,
	} {
		if got := first.Header().Get(key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if w := ask("/base/docs/store.html", "If-None-Match", first.Header().Get("ETag")); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("with the tag of the answer: %d %s", w.Code, w.Body)
	}
}

func TestHandlerWithoutSources(t *testing.T) {
	w := httptest.NewRecorder()
	Handler("/docs", fstest.MapFS{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/docs/", nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "cannot read the documentation") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestWriteFolder(t *testing.T) {
	s, dir := newSite(t), filepath.Join(t.TempDir(), "new")
	if err := s.WriteFolder(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range s.Names() {
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || string(got) != content(t, s, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
