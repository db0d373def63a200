package sampling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// maxDepth is the maximum nesting depth of a strategies file; strategies need five levels.
const maxDepth = 64

// Limits on the number of JSON values in a file: freeValues, plus one for each bytesPerValue bytes.
// Strategies files stay below them, because they contain names. Each value takes about 100 bytes of
// memory, however short it is.
const (
	freeValues    = 1000
	bytesPerValue = 8
)

// document is a parsed JSON text. Each value knows its position.
type document struct {
	name string // file name for messages
	text []byte
	root value

	starts []int // offsets of the line starts
}

// value is a JSON value with its position.
type value struct {
	at      int // offset in the text
	scalar  any // nil, bool, string or json.Number; only for scalarKind
	members []member
	items   []value
	kind    kind
}

type kind uint8

const (
	scalarKind kind = iota
	objectKind
	arrayKind
)

// what describes the value for error messages.
func (v value) what() string {
	switch {
	case v.kind == objectKind:
		return "an object"
	case v.kind == arrayKind:
		return "a list"
	case v.scalar == nil:
		return "null"
	}
	switch s := v.scalar.(type) {
	case string:
		return "the string " + quoted(s)
	case json.Number:
		return "the number " + s.String()
	}
	return fmt.Sprint(v.scalar)
}

// member is a member of an object. An object may have two members with the same name.
type member struct {
	name string
	at   int
	value
}

// parseDocument parses a JSON text. Errors have the line and column of the mistake.
func parseDocument(name string, text []byte) (*document, error) {
	d := &document{name: name, text: text, starts: []int{0}}
	for i, c := range text {
		if c == '\n' {
			d.starts = append(d.starts, i+1)
		}
	}
	if i := invalidUTF8(text); i >= 0 {
		return nil, d.problems(problem{i, "file is not valid UTF-8"})
	}
	body := bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF")) // byte order mark, written by some editors
	skipped := len(text) - len(body)
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, d.problems(problem{0, "file is empty; " +
			`write {"default_strategy": {"type": "probabilistic", "param": 0.01}}, or null for no strategies`})
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(body, new(json.RawMessage)); errors.As(err, &syntax) {
		at := max(0, int(syntax.Offset)-1)
		return nil, d.problems(problem{skipped + at, "not JSON: " + syntax.Error() + hintSyntax(body, at)})
	}
	p := &treeParser{text: body, skipped: skipped, dec: json.NewDecoder(bytes.NewReader(body))}
	p.dec.UseNumber()
	var err error
	if d.root, err = p.value(1); err != nil {
		return nil, d.problems(problem{p.start(), err.Error()})
	}
	return d, nil
}

// hintSyntax returns a hint for a common JSON syntax error at offset at; "" if there is none.
func hintSyntax(body []byte, at int) string {
	if at >= len(body)-1 && !json.Valid(body) && bytes.Count(body, []byte("{")) > bytes.Count(body, []byte("}")) {
		return "; missing }"
	}
	before := bytes.TrimRight(body[:at], " \t\r\n")
	switch c := body[at]; {
	case json.Valid(before):
		return "; the file must contain exactly one object"
	case bytes.HasSuffix(before, []byte(",")) && (c == '}' || c == ']'):
		return "; remove the comma before " + string(c)
	case c == '\'':
		return `; use double quotes (") around strings`
	case c == '#' || c == '/':
		return "; JSON does not support comments"
	case c == '"' || c == '{':
		return "; maybe a comma is missing before this"
	}
	return ""
}

// invalidUTF8 returns the offset of the first byte that is not valid UTF-8, or -1.
func invalidUTF8(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// treeParser builds values from a text that is known to be valid JSON.
type treeParser struct {
	text    []byte
	skipped int // bytes before text
	dec     *json.Decoder
	values  int // number of values read
}

// start returns the offset of the next token.
func (p *treeParser) start() int {
	at := int(p.dec.InputOffset())
	for at < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[at]) >= 0 {
		at++
	}
	return p.skipped + at
}

var (
	errDepth  = fmt.Errorf("nested deeper than %d levels", maxDepth)
	errValues = errors.New("too many values for a strategies file; check that this is the right file")
)

func (p *treeParser) value(depth int) (value, error) {
	v := value{at: p.start()}
	if p.values++; p.values > freeValues+v.at/bytesPerValue {
		return v, errValues
	}
	token, err := p.dec.Token()
	if err != nil && err != io.EOF {
		return v, err
	}
	open, nested := token.(json.Delim)
	if !nested {
		v.scalar = token
		return v, nil
	}
	if depth > maxDepth {
		return v, errDepth
	}
	if v.kind = arrayKind; open == '{' {
		v.kind = objectKind
	}
	for p.dec.More() && err == nil {
		var m member
		if v.kind == arrayKind {
			m.value, err = p.value(depth + 1)
			v.items = append(v.items, m.value)
			continue
		}
		m.at = p.start()
		name, _ := p.dec.Token()
		m.name, _ = name.(string)
		m.value, err = p.value(depth + 1)
		v.members = append(v.members, m)
	}
	if err == nil {
		_, err = p.dec.Token() // the closing delimiter
	}
	return v, err
}

// problem is a mistake in a document, with its offset.
type problem struct {
	at  int
	msg string
}

// maxProblems is the maximum number of mistakes that are reported for a file.
const maxProblems = 20

// problems returns an error with one line for each mistake, sorted by position; nil if there are
// none.
func (d *document) problems(all ...problem) error {
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b problem) int { return a.at - b.at })
	var lines []string
	for i, p := range all {
		if i == maxProblems {
			lines = append(lines, fmt.Sprintf("%s: and %d more mistakes", d.name, len(all)-i))
			break
		}
		line := d.line(p.at)
		column := 1 + utf8.RuneCount(d.text[d.starts[line-1]:p.at])
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", d.name, line, column, p.msg))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// line returns the line number of an offset.
func (d *document) line(at int) int { return sort.SearchInts(d.starts, at+1) }

// maxQuoted is the maximum length of a quotation from the file in messages, in bytes.
const maxQuoted = 60

func quoted(s string) string {
	if len(s) > maxQuoted {
		s = strings.ToValidUTF8(s[:maxQuoted], "") + "..."
	}
	return fmt.Sprintf("%q", s)
}
