// Package docsite renders the documentation in the repository as a site of static files: the pages
// in the folder docs, the documents in the root folder, and the configuration files that they link
// to. The query service serves the site, and `make docs` writes it to a folder.
//
// All links in the site are relative, so that it works below any path. The first page,
// docs/README.md, determines the navigation: each of its sections is a group of links.
package docsite

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

//go:embed site.css site.js page.html
var assets embed.FS

// File is a file of a site.
type File struct {
	Content []byte
	Type    string // content type
	ETag    string // entity tag, with quotes
}

// Site is a rendered site. It is immutable.
type Site struct {
	files map[string]File
}

// New renders the documentation in a file system with the files of the repository. home is the link
// from the root of the site to the web UI; "" if the site has no such link.
func New(repository fs.FS, home string) (*Site, error) {
	sources, err := readSources(repository)
	if err != nil {
		return nil, fmt.Errorf("cannot read the documentation: %w", err)
	}
	s := &Site{files: map[string]File{}}
	for name, content := range sources.raw {
		s.addPage(name, content)
	}
	for _, name := range []string{"site.css", "site.js"} {
		content, err := assets.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s.addPage(name, content)
	}
	return s, s.addPages(sources, home)
}

// addPages renders all pages, and the index for searches in them.
func (s *Site) addPages(sources *sources, home string) error {
	pages := parseAll(sources)
	layout, err := newLayout(pages, home)
	if err != nil {
		return err
	}
	var index index
	for _, p := range pages {
		content, err := layout.render(p)
		if err != nil {
			return fmt.Errorf("cannot render %s: %w", p.source, err)
		}
		s.addPage(p.target, content)
		index.addPage(p)
	}
	content, err := index.script()
	s.addPage("search-index.js", content)
	return err
}

func (s *Site) addPage(name string, content []byte) {
	sum := sha256.Sum256(content)
	s.files[name] = File{Content: content, Type: contentType(name), ETag: `"` + hex.EncodeToString(sum[:12]) + `"`}
}

// Names returns the names of all files, sorted.
func (s *Site) Names() []string { return slices.Sorted(maps.Keys(s.files)) }

// File returns a file by its name, such as "deploy/docker.html".
func (s *Site) File(name string) (File, bool) {
	f, ok := s.files[name]
	return f, ok
}

// WriteFolder writes all files to a folder, which it creates if necessary.
func (s *Site) WriteFolder(dir string) error {
	var errs []error
	for name, f := range s.files {
		target := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(target), 0o755)
		if err == nil {
			err = os.WriteFile(target, f.Content, 0o644)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// contentType returns the media type of a file. It does not use package mime, whose types depend on
// the host.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".json":
		return "application/json"
	case ".webp":
		return "image/webp"
	case ".svg":
		return "image/svg+xml"
	}
	return "application/octet-stream"
}
