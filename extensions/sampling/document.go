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

// maxDepth is how deep values of a strategies file may nest; strategies themselves need five levels.
const maxDepth = 64

// A text may have so many values anywhere, and beyond that one in so many bytes: those of strategies, which have names, take more. A value
// takes about a hundred bytes of memory, however short it is.
const (
	freeValues    = 1000
	bytesPerValue = 8
)

// A document is a JSON text as a tree that knows where everything stands.
type document struct {
	name string // of the file, for messages
	text []byte
	root value

	starts []int // where the lines begin
}

// value is a value of a document.
type value struct {
	at      int // where it begins in the text
	scalar  any // nil, bool, string or json.Number, unless it is one of the next
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

// what is the value's kind in the words of messages.
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
		return "the text " + quoted(s)
	case json.Number:
		return "the number " + s.String()
	}
	return fmt.Sprint(v.scalar)
}

// member is a member of an object. Its name may occur twice.
type member struct {
	name string
	at   int
	value
}

// parseDocument reads a JSON text. The error says where it is none.
func parseDocument(name string, text []byte) (*document, error) {
	d := &document{name: name, text: text, starts: []int{0}}
	for i, c := range text {
		if c == '\n' {
			d.starts = append(d.starts, i+1)
		}
	}
	if i := invalidUTF8(text); i >= 0 {
		return nil, d.problems(problem{i, "the file is not UTF-8"})
	}
	body := bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF")) // which some editors put there
	skipped := len(text) - len(body)
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, d.problems(problem{0, "the file is empty; " +
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

// hintSyntax says what is usually meant by what stands at a place that is not JSON.
func hintSyntax(body []byte, at int) string {
	if at >= len(body)-1 && !json.Valid(body) && bytes.Count(body, []byte("{")) > bytes.Count(body, []byte("}")) {
		return "; a } is missing"
	}
	before := bytes.TrimRight(body[:at], " \t\r\n")
	switch c := body[at]; {
	case json.Valid(before):
		return "; the file must be one object, and end with it"
	case bytes.HasSuffix(before, []byte(",")) && (c == '}' || c == ']'):
		return "; there must be no comma before " + string(c)
	case c == '\'':
		return `; write " around texts`
	case c == '#' || c == '/':
		return "; JSON has no comments"
	case c == '"' || c == '{':
		return "; maybe a comma is missing before it"
	}
	return ""
}

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

// treeParser makes values of a text that is known to be JSON.
type treeParser struct {
	text    []byte
	skipped int // bytes before text
	dec     *json.Decoder
	values  int // so far
}

// start is where the next token begins.
func (p *treeParser) start() int {
	at := int(p.dec.InputOffset())
	for at < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[at]) >= 0 {
		at++
	}
	return p.skipped + at
}

var (
	errDepth  = fmt.Errorf("nested deeper than %d levels", maxDepth)
	errValues = errors.New("there are more values than strategies have; this is another kind of file")
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
		_, err = p.dec.Token() // which closes it
	}
	return v, err
}

// problem is a mistake in a document.
type problem struct {
	at  int
	msg string
}

// maxProblems is how many mistakes of a file are told.
const maxProblems = 20

// problems returns the error of mistakes, one a line in the order of the text, each with its place; nil for none.
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

// line returns the number of the line of a place.
func (d *document) line(at int) int { return sort.SearchInts(d.starts, at+1) }

// maxQuoted is how much of a text of the file a message repeats, in bytes.
const maxQuoted = 60

func quoted(s string) string {
	if len(s) > maxQuoted {
		s = strings.ToValidUTF8(s[:maxQuoted], "") + "..."
	}
	return fmt.Sprintf("%q", s)
}
