package repo_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/internal/docsite"
	"github.com/tracing-backend/tracing/test/harness"
)

// crawler follows all links of a site.
type crawler struct {
	t     *testing.T
	fetch func(path string) (content []byte, found bool)
	root  string // path of the first page

	pages    map[string]map[string]bool // ids of each page
	links    []siteLink
	external map[string]bool
	repo     []string // paths in the repository that pages name
}

// siteLink is a link from a page to a path, with a fragment or "".
type siteLink struct{ from, to, fragment string }

// visit reads a page and the pages that it links to.
func (c *crawler) visit(path string) {
	if _, seen := c.pages[path]; seen {
		return
	}
	content, found := c.fetch(path)
	if !found {
		return
	}
	c.pages[path] = map[string]bool{}
	if !strings.HasSuffix(path, ".html") && !strings.HasSuffix(path, "/") {
		return
	}
	root, err := html.Parse(bytes.NewReader(content))
	if err != nil {
		c.t.Fatal(err)
	}
	var targets []string
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				c.pages[path][a.Val] = true
			case "data-path":
				c.repo = append(c.repo, a.Val)
			case "href", "src":
				if to := c.link(path, a.Val); to != "" {
					targets = append(targets, to)
				}
			}
		}
	}
	for _, to := range targets {
		c.visit(to)
	}
}

// link notes a link and returns its path, or "" if it leads to another site.
func (c *crawler) link(from, reference string) string {
	to, err := url.Parse(reference)
	if err != nil {
		c.t.Errorf("%s: %v", from, err)
		return ""
	}
	if to.Scheme == "repository" {
		c.t.Errorf("%s: the site does not have the image %s", from, to.Opaque)
		return ""
	}
	if to.Host != "" {
		c.external[to.Host] = true
		return ""
	}
	to = (&url.URL{Path: from}).ResolveReference(to)
	if !strings.HasPrefix(to.Path, c.root) {
		return "" // the web UI
	}
	c.links = append(c.links, siteLink{from, to.Path, to.Fragment})
	return to.Path
}

// check reports links to pages and headings that do not exist.
func (c *crawler) check() {
	for _, l := range c.links {
		ids, ok := c.pages[l.to]
		switch {
		case !ok:
			c.t.Errorf("%s: no page %s", l.from, l.to)
		case l.fragment != "" && !ids[l.fragment]:
			c.t.Errorf("%s: no heading %s in %s", l.from, l.fragment, l.to)
		}
	}
	for _, name := range c.repo {
		if _, err := os.Stat(filepath.Join(harness.Root(c.t), filepath.FromSlash(name))); err != nil {
			c.t.Errorf("the documentation names %s: %v", name, err)
		}
	}
}

func crawl(t *testing.T, first string, fetch func(string) ([]byte, bool)) *crawler {
	t.Helper()
	c := &crawler{t: t, fetch: fetch, root: first, pages: map[string]map[string]bool{}, external: map[string]bool{}}
	c.visit(first)
	c.check()
	t.Logf("%d pages and files, %d links, %d to headings, %d names of files in the repository, %d other hosts", len(c.pages), len(c.links),
		len(slices.DeleteFunc(slices.Clone(c.links), func(l siteLink) bool { return l.fragment == "" })), len(c.repo), len(c.external))
	return c
}

// TestSiteStyles checks that the variables in the styles of the documentation site are defined.
func TestSiteStyles(t *testing.T) {
	site, err := docsite.New(os.DirFS(harness.Root(t)), "")
	if err != nil {
		t.Fatal(err)
	}
	styles := ""
	for _, name := range []string{"tokens.css", "site.css"} {
		f, ok := site.File(name)
		if !ok {
			t.Fatalf("no file %s", name)
		}
		styles += string(f.Content)
	}
	for _, m := range regexp.MustCompile(`var\((--[\w-]+)`).FindAllStringSubmatch(styles, -1) {
		if !strings.Contains(styles, m[1]+":") {
			t.Errorf("%s is not defined", m[1])
		}
	}
}

// TestSiteLinks checks all links of the documentation site, as a folder and as the query service
// serves it, and that both have the same pages, all of which can be reached from the first one.
func TestSiteLinks(t *testing.T) {
	site, err := docsite.New(os.DirFS(harness.Root(t)), "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := site.WriteFolder(dir); err != nil {
		t.Fatal(err)
	}
	folder := crawl(t, "/", func(path string) ([]byte, bool) {
		if strings.HasSuffix(path, "/") {
			path += "index.html"
		}
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		return content, err == nil
	})
	for _, name := range site.Names() {
		if _, ok := folder.pages["/"+name]; !ok && name != "search-index.js" && filepath.Ext(name) == ".html" {
			t.Errorf("no page links to %s", name)
		}
	}
	handler := docsite.Handler("/base/docs", tracing.Documents())
	served := crawl(t, "/base/docs/", func(path string) ([]byte, bool) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		content, err := io.ReadAll(w.Body)
		return content, err == nil && w.Code == http.StatusOK
	})
	if len(served.pages) != len(folder.pages) {
		t.Errorf("%d pages are served, and %d are in the folder", len(served.pages), len(folder.pages))
	}
}
