package docsite

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// page is a parsed document.
type page struct {
	source string // path in the repository
	target string // name in the site
	title  string
	text   []byte // Markdown
	tree   ast.Node
}

// converter parses and renders Markdown as it looks on code hosting sites. Alignment of table cells
// is an attribute, because the Content-Security-Policy allows no styles within the page.
var converter = goldmark.New(
	goldmark.WithExtensions(
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		extension.Strikethrough,
	),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()), // a few documents use HTML in tables
)

// parseAll returns all pages, sorted by their sources.
func parseAll(s *sources) []*page {
	var pages []*page
	for _, source := range slices.Sorted(maps.Keys(s.pages)) {
		markdown := s.pages[source]
		if path.Ext(source) != ".md" {
			markdown = fmt.Appendf(nil, "# %s\n\n````%s\n%s\n````\n", source, strings.TrimPrefix(path.Ext(source), "."), markdown)
		}
		pages = append(pages, parse(s, source, markdown))
	}
	nameLinks(pages)
	return pages
}

func parse(s *sources, source string, markdown []byte) *page {
	p := &page{source: source, target: s.targetOf(source), title: path.Base(source), text: markdown}
	context := parser.NewContext(parser.WithIDs(&headingIDs{seen: map[string]int{}}))
	p.tree = converter.Parser().Parse(text.NewReader(markdown), parser.WithContext(context))
	named := false
	p.each(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 1 && !named {
				p.title, named = p.plain(n), true
			}
		case *ast.Link:
			n.Destination = []byte(s.relink(p, string(n.Destination)))
		case *ast.Image:
			n.Destination = []byte(s.relink(p, string(n.Destination)))
		}
	})
	p.replaceRepositoryLinks()
	return p
}

// each calls visit for every node of a page, parents first.
func (p *page) each(visit func(ast.Node)) {
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			visit(n)
		}
		return ast.WalkContinue, nil
	})
}

// plain returns the text of a node without markup.
func (p *page) plain(n ast.Node) string {
	var b bytes.Buffer
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(p.text))
				if n.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// repositoryLink precedes the destination of a link to a file or folder of the repository that is
// not part of the site.
const repositoryLink = "repository:"

// relink returns the destination in the site for a destination in a document.
func (s *sources) relink(p *page, destination string) string {
	link, fragment, _ := strings.Cut(destination, "#")
	if link == "" || strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return destination
	}
	source := path.Join(path.Dir(p.source), link)
	target := s.targetOf(source)
	if target == "" {
		return repositoryLink + source
	}
	if fragment != "" {
		target += "#" + fragment
	}
	return relative(p.target, target)
}

// relative returns the link from one file of the site to another one.
func relative(from, to string) string {
	link, err := filepath.Rel(filepath.Dir(filepath.FromSlash(from)), filepath.FromSlash(to))
	if err != nil {
		panic("BUG: " + err.Error()) // both are relative paths
	}
	return filepath.ToSlash(link)
}

// replaceRepositoryLinks replaces links to files outside of the site with their text.
func (p *page) replaceRepositoryLinks() {
	var links []*ast.Link
	p.each(func(n ast.Node) {
		if l, ok := n.(*ast.Link); ok && strings.HasPrefix(string(l.Destination), repositoryLink) {
			links = append(links, l)
		}
	})
	for _, l := range links {
		path := strings.TrimPrefix(string(l.Destination), repositoryLink)
		text := ast.NewEmphasis(1)
		text.SetAttributeString("data-path", path)
		text.SetAttributeString("title", path+" in the repository")
		for child := l.FirstChild(); child != nil; child = l.FirstChild() {
			text.AppendChild(text, child)
		}
		l.Parent().ReplaceChild(l.Parent(), l, text)
	}
}

// fileName is the text of a link that only repeats the name of a file.
var fileName = regexp.MustCompile(`^[\w./-]+\.md$`)

// nameLinks replaces link texts that are only file names with the title and heading of the target:
// readers of the site see no files.
func nameLinks(pages []*page) {
	byTarget := make(map[string]*page, len(pages))
	for _, p := range pages {
		byTarget[p.target] = p
	}
	for _, p := range pages {
		p.each(func(n ast.Node) {
			l, ok := n.(*ast.Link)
			if !ok || !fileName.MatchString(p.plain(l)) {
				return
			}
			link, fragment, _ := strings.Cut(string(l.Destination), "#")
			to := byTarget[path.Join(path.Dir(p.target), link)]
			if to == nil {
				return
			}
			name := to.title
			if i := slices.IndexFunc(to.headings(), func(h heading) bool { return h.id == fragment && h.level > 1 }); i >= 0 {
				name += ", " + to.headings()[i].text
			}
			l.RemoveChildren(l)
			l.AppendChild(l, ast.NewString([]byte(name)))
		})
	}
}

// headingIDs generates the ids of headings as code hosting sites do, so that links to them work in
// both places.
type headingIDs struct{ seen map[string]int }

// Generate implements [parser.IDs].
func (h *headingIDs) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(string(value)))
	n := h.seen[id]
	h.seen[id]++
	if n > 0 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	return []byte(id)
}

// Put implements [parser.IDs].
func (h *headingIDs) Put(value []byte) { h.seen[string(value)]++ }
