package docsite

import (
	"bytes"
	"html/template"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// layout is the frame around the content of all pages.
type layout struct {
	template *template.Template
	groups   []group
	home     string
}

// group is a section of the first page, with the pages that it lists. The navigation shows the
// links of one group, so that all groups fit on a screen.
type group struct {
	Name  string
	Links []link
	Open  bool // its links are shown: it contains the page, or it is the first group and none contains the page
}

// link is a link of the navigation.
type link struct {
	Text, URL string
	Current   string // "page" if the link leads to the page itself, "true" if to its parent, or ""
}

func newLayout(pages []*page, home string) (*layout, error) {
	t, err := template.ParseFS(assets, "page.html")
	if err != nil {
		return nil, err
	}
	l := &layout{template: t, home: home}
	titles := map[string]string{}
	for _, p := range pages {
		titles[p.target] = p.title
	}
	for _, p := range pages {
		if p.source == firstPage {
			l.groups = groupsOf(p, titles)
		}
	}
	return l, nil
}

// groupsOf returns the sections of the first page that list pages of the site. The name of a link
// is the title of its page.
func groupsOf(first *page, titles map[string]string) []group {
	var groups []group
	for n := first.tree.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				groups = append(groups, group{Name: first.plain(n)})
			}
		case *ast.List:
			if len(groups) > 0 {
				g := &groups[len(groups)-1]
				g.Links = append(g.Links, linksOf(n, titles)...)
			}
		}
	}
	return slices.DeleteFunc(groups, func(g group) bool { return len(g.Links) == 0 })
}

// linksOf returns the first link of each item of a list, if it leads to a page.
func linksOf(list *ast.List, titles map[string]string) []link {
	var links []link
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		if item.FirstChild() == nil {
			continue
		}
		if l, ok := item.FirstChild().FirstChild().(*ast.Link); ok && titles[string(l.Destination)] != "" {
			links = append(links, link{Text: titles[string(l.Destination)], URL: string(l.Destination)})
		}
	}
	return links
}

// view is what the template shows of a page.
type view struct {
	Title    string
	Root     string // link to the root of the site: "" or, for example, "../"
	Home     string
	Groups   []group
	Sections []link // headings of the second level
	Content  template.HTML
}

// render returns a page as HTML.
func (l *layout) render(p *page) ([]byte, error) {
	var content bytes.Buffer
	if err := converter.Renderer().Render(&content, p.text, p.tree); err != nil {
		return nil, err
	}
	v := view{Title: p.title, Root: strings.Repeat("../", strings.Count(p.target, "/"))}
	if l.home != "" {
		v.Home = v.Root + l.home
	}
	for _, g := range l.groups {
		shown := group{Name: g.Name}
		for _, one := range g.Links {
			is := current(one.URL, p.target)
			shown.Links = append(shown.Links, link{Text: one.Text, URL: relative(p.target, one.URL), Current: is})
			shown.Open = shown.Open || is != ""
		}
		v.Groups = append(v.Groups, shown)
	}
	if len(v.Groups) > 0 && !slices.ContainsFunc(v.Groups, func(g group) bool { return g.Open }) {
		v.Groups[0].Open = true
	}
	for _, h := range p.headings() {
		if h.level == 2 {
			v.Sections = append(v.Sections, link{Text: h.text, URL: "#" + h.id})
		}
	}
	// Wide blocks scroll sideways, also with the keyboard.
	html := strings.ReplaceAll(content.String(), "<pre>", `<pre tabindex="0">`)
	html = strings.ReplaceAll(html, "<table>", `<div class="table" tabindex="0" role="group" aria-label="Table"><table>`)
	html = strings.ReplaceAll(html, "</table>", "</table></div>")
	v.Content = template.HTML(html) //nolint:gosec // built from files in the repository
	var b bytes.Buffer
	err := l.template.Execute(&b, v)
	return b.Bytes(), err
}

// current returns the relation of a link's target to the current page: the pages in a folder belong
// to the page with the same name.
func current(to, page string) string {
	switch {
	case to == page:
		return "page"
	case strings.HasPrefix(page, strings.TrimSuffix(to, ".html")+"/"):
		return "true"
	}
	return ""
}

// heading is a heading of a page.
type heading struct {
	level    int
	id, text string
}

func (p *page) headings() []heading {
	var hs []heading
	p.each(func(n ast.Node) {
		if h, ok := n.(*ast.Heading); ok {
			hs = append(hs, p.heading(h))
		}
	})
	return hs
}

func (p *page) heading(n *ast.Heading) heading {
	id, _ := n.AttributeString("id")
	text, _ := id.([]byte)
	return heading{level: n.Level, id: string(text), text: p.plain(n)}
}
