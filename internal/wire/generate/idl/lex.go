package idl

import (
	"fmt"
	"strings"
	"text/scanner"
)

// token is a name, a number, a string without its quotes, or one character of punctuation.
type token struct {
	kind rune // scanner.Ident, Int, String, EOF, or the character
	text string
	doc  []string // the comment that ends on the line above
	at   scanner.Position
}

func (t token) String() string {
	if t.kind == scanner.EOF {
		return "the end of the file"
	}
	return fmt.Sprintf("%q", t.text)
}

// lex cuts src into tokens, of which the last is EOF. Names may contain dots.
func lex(name, src string) ([]token, error) {
	var firstErr error
	var s scanner.Scanner
	s.Init(strings.NewReader(src))
	s.Filename = name
	s.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanStrings | scanner.ScanComments
	s.IsIdentRune = func(c rune, i int) bool {
		return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || i > 0 && (c == '.' || '0' <= c && c <= '9')
	}
	s.Error = func(s *scanner.Scanner, msg string) {
		if firstErr == nil {
			firstErr = fmt.Errorf("%s: %s", s.Position, msg)
		}
	}
	var tokens []token
	var doc comment
	for {
		kind := s.Scan()
		if kind == scanner.Comment {
			doc.add(s.Position.Line, s.TokenText())
			continue
		}
		t := token{kind: kind, text: s.TokenText(), doc: doc.above(s.Position.Line), at: s.Position}
		if kind == scanner.String {
			t.text = strings.Trim(t.text, `"`)
		}
		tokens = append(tokens, t)
		if kind == scanner.EOF || firstErr != nil {
			return tokens, firstErr
		}
	}
}

// comment is a run of comments on consecutive lines.
type comment struct {
	lines []string
	last  int
}

func (c *comment) add(line int, text string) {
	if line != c.last+1 {
		c.lines = nil
	}
	c.lines = append(c.lines, strings.TrimSpace(strings.TrimPrefix(text, "//")))
	c.last = line
}

// above takes the comment if it ends right above a line.
func (c *comment) above(line int) []string {
	if c.last+1 != line {
		return nil
	}
	lines := c.lines
	*c = comment{}
	return lines
}
