package docsite

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

const (
	// indexedLevel is the deepest level of headings that are separate results.
	indexedLevel = 4
	// minWord and maxWord limit the length of indexed words in bytes.
	minWord, maxWord = 2, 40
	// excerptLength is the maximum length of the excerpt in a result, in bytes.
	excerptLength = 140
)

// index is the data that site.js searches: the words of each section of each page.
type index struct {
	Pages    [][2]string      `json:"pages"`    // URL and title
	Sections []indexedSection `json:"sections"` // in the order of the pages

	// Words has the sections that contain each word: the first one, then the distances between
	// them.
	Words map[string][]int `json:"words"`
	last  map[string]int
}

type indexedSection struct {
	Page    int    `json:"p"`
	ID      string `json:"i"`
	Heading string `json:"h"`
	Excerpt string `json:"e"`
}

// addPage adds the sections of a page.
func (x *index) addPage(p *page) {
	x.Pages = append(x.Pages, [2]string{p.target, p.title})
	x.beginSection(heading{text: p.title})
	first := true
	p.each(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Heading:
			if h := p.heading(n); h.level <= indexedLevel && !first {
				x.beginSection(h)
			}
			first = false
			x.words(p.plain(n))
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			x.words(string(n.Lines().Value(p.text)))
		case *ast.Text:
			if _, ok := n.Parent().(*ast.Heading); !ok {
				x.text(string(n.Segment.Value(p.text)))
			}
		}
	})
}

// beginSection starts a section of the last page.
func (x *index) beginSection(h heading) {
	x.Sections = append(x.Sections, indexedSection{Page: len(x.Pages) - 1, ID: h.id, Heading: h.text})
}

// text adds text to the last section.
func (x *index) text(s string) {
	last := &x.Sections[len(x.Sections)-1]
	if len(last.Excerpt) < excerptLength {
		last.Excerpt = strings.TrimSpace(last.Excerpt + " " + s)
	}
	x.words(s)
}

// words adds the words of a text to the last section.
func (x *index) words(s string) {
	if x.Words == nil {
		x.Words, x.last = map[string][]int{}, map[string]int{}
	}
	section := len(x.Sections) - 1
	for _, word := range wordsOf(s) {
		last, known := x.last[word]
		if known && last == section {
			continue
		}
		x.Words[word] = append(x.Words[word], section-last)
		x.last[word] = section
	}
}

// wordsOf splits a text into words as site.js splits searches: letters, digits and underscores.
func wordsOf(s string) []string {
	var words []string
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if len(w) >= minWord && len(w) <= maxWord {
			words = append(words, w)
		}
	}
	return words
}

// script returns the index as a script, which works even when pages are opened as files.
func (x *index) script() ([]byte, error) {
	for i := range x.Sections {
		x.Sections[i].Excerpt = strings.ToValidUTF8(x.Sections[i].Excerpt[:min(len(x.Sections[i].Excerpt), excerptLength)], "")
	}
	var b bytes.Buffer
	b.WriteString("searchIndexLoaded(")
	if err := json.NewEncoder(&b).Encode(x); err != nil {
		return nil, err
	}
	b.WriteString(");\n")
	return b.Bytes(), nil
}
