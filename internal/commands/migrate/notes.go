package migrate

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// noteKind says what happened to a line.
type noteKind int

const (
	changed noteKind = iota // another key or value with the same effect
	dropped                 // nothing replaces it, and nothing needs to
	decide                  // only the user can decide what replaces it
)

var noteWords = [...]string{changed: "changed", dropped: "dropped", decide: "decide"}

type note struct {
	kind  noteKind
	count int // of the settings that it covers
	text  string
}

// Width of comments, in characters.
const (
	noteWidth    = 100
	minNoteWidth = 40 // of the text in a deeply nested block
)

// noteNode records a note and returns the node that marks its place.
func (d *document) noteNode(kind noteKind, format string, args ...any) *yaml.Node {
	d.notes = append(d.notes, note{kind, 1, oneLine(fmt.Sprintf(format, args...))})
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: noteTag, Value: strconv.Itoa(len(d.notes) - 1)}
}

// oneLine replaces characters that would end or hide a comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Cf) {
			return ' '
		}
		return r
	}, s)
}

// writeNotes replaces the lines that mark notes with comments. Notes without a place go to the top.
func (d *document) writeNotes(text []byte, marker string) []byte {
	line := regexp.MustCompile(`^((?: |- )*)` + regexp.QuoteMeta(marker) + `(\d+)(?:: *(?:null)?)?$`)
	var out, top bytes.Buffer
	written := map[int]bool{}
	for l := range bytes.Lines(text) {
		m := line.FindSubmatch(bytes.TrimRight(l, "\n"))
		if m == nil {
			out.Write(l)
			continue
		}
		i, err := strconv.Atoi(string(m[2]))
		if err != nil || i >= len(d.notes) {
			out.Write(l)
			continue
		}
		d.notes[i].write(&out, string(m[1]))
		written[i] = true
	}
	for i, n := range d.notes {
		if !written[i] {
			n.write(&top, "")
		}
	}
	return append(top.Bytes(), out.Bytes()...)
}

// write writes a note as comment lines. The prefix of the first line may begin list items.
func (n note) write(out *bytes.Buffer, prefix string) {
	text := noteWords[n.kind] + ":"
	width := max(noteWidth-len(prefix)-2, minNoteWidth)
	mark := "# "
	for _, word := range strings.Fields(n.text) {
		if len(text)+1+len(word) > width {
			fmt.Fprintf(out, "%s%s%s\n", prefix, mark, text)
			prefix, mark, text = strings.Repeat(" ", len(prefix)), "#   ", word
			continue
		}
		text += " " + word
	}
	fmt.Fprintf(out, "%s%s%s\n", prefix, mark, text)
}

// count returns the number of settings that notes of a kind cover.
func (d *document) count(kind noteKind) (n int) {
	for _, note := range d.notes {
		if note.kind == kind {
			n += note.count
		}
	}
	return n
}
