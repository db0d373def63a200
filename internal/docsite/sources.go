package docsite

import (
	"io/fs"
	"path"
	"strings"
)

// Sources are the files of the repository from which a site is built, in addition to all files in
// the folder docs, as patterns of path.Match.
var sourcePatterns = []string{
	"*.md",
	"config-examples/*.yaml",
	"deploy/helm/examples/*.yaml",
	"deploy/helm/tracing/values.yaml",
}

// The files that the site shares with the web UI: colors, sizes and fonts, and the icon.
const (
	tokensFile = "ui/src/shell/tokens.css"
	iconFile   = "ui/public/favicon.svg"
)

// firstPage is the source of the first page and of the navigation.
const firstPage = "docs/README.md"

// sources is the content of the files from which a site is built.
type sources struct {
	pages map[string][]byte // Markdown and YAML, by the path in the repository
	raw   map[string][]byte // files that are copied, by their name in the site
}

func readSources(repository fs.FS) (*sources, error) {
	s := &sources{pages: map[string][]byte{}, raw: map[string][]byte{}}
	for _, pattern := range sourcePatterns {
		names, err := fs.Glob(repository, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if s.pages[name], err = fs.ReadFile(repository, name); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range []string{tokensFile, iconFile} {
		var err error
		if s.raw[path.Base(name)], err = fs.ReadFile(repository, name); err != nil {
			return nil, err
		}
	}
	return s, fs.WalkDir(repository, "docs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(repository, name)
		switch path.Ext(name) {
		case ".md":
			s.pages[name] = content
		case ".webp", ".svg", ".json":
			s.raw[strings.TrimPrefix(name, "docs/")] = content
		}
		return err
	})
}

// targetOf returns the name that a file of the repository has in the site, or "" if it is not part
// of the site.
func (s *sources) targetOf(source string) string {
	name := strings.TrimPrefix(source, "docs/")
	if _, ok := s.raw[name]; ok && name != source {
		return name
	}
	if _, ok := s.pages[source]; !ok {
		return ""
	}
	if source == firstPage {
		return "index.html"
	}
	return strings.TrimSuffix(name, ".md") + ".html"
}
