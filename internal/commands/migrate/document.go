package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Limits of the input with all aliases expanded, as for configuration files.
const (
	maxInput = 4 << 20 // bytes
	maxNodes = 20_000
	maxDepth = 64
	maxBytes = 16 << 20 // of texts and comments
)

// noteTag marks the nodes that stand for notes.
const noteTag = "!note"

// document is a configuration file that a mapping rewrites.
type document struct {
	root       *block
	head, foot string // comments before and after the content
	notes      []note
	source     string              // the text that was parsed
	input      []setting           // what it has, see lost.go
	listed     map[*yaml.Node]bool // values that a note covers

	taken     []*yaml.Node // values that are configurations
	fragments []string     // values that are parts of a configuration
	broken    []string     // values that look like configurations but cannot be read, with the reason
}

// newDocument parses YAML text with a map at the top. Aliases are expanded, because a mapping must
// be able to change one place without another.
func newDocument(text string) (*document, error) {
	if len(text) > maxInput {
		return nil, fmt.Errorf("input too large: more than %d MiB", maxInput>>20)
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("input is empty")
	case err != nil:
		return nil, fmt.Errorf("not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("input has several YAML documents; pass one of them")
	}
	return documentOf(&doc, text)
}

// documentOf returns the document of a parsed node.
func documentOf(doc *yaml.Node, text string) (*document, error) {
	d := &document{head: doc.HeadComment, foot: doc.FootComment, source: text}
	root := doc
	if doc.Kind == yaml.DocumentNode {
		root = doc.Content[0]
	}
	e := &expander{}
	root = e.expand(root, 0)
	if e.err != nil {
		return nil, e.err
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("input must be a map of sections such as receivers, exporters and service")
	}
	d.root = &block{d, root}
	return d, nil
}

// expander copies nodes and replaces aliases with the nodes that they stand for.
type expander struct {
	nodes, bytes int
	err          error
}

func (e *expander) fail(n *yaml.Node, format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...))
	}
}

func (e *expander) expand(n *yaml.Node, depth int) *yaml.Node {
	e.nodes++
	e.bytes += len(n.Value) + len(n.HeadComment) + len(n.LineComment) + len(n.FootComment)
	if e.nodes > maxNodes || depth > maxDepth || e.bytes > maxBytes {
		e.fail(n, "input too large: more than %d values, %d levels or %d MiB of text", maxNodes, maxDepth, maxBytes>>20)
	}
	if e.err != nil {
		return n
	}
	if n.Kind == yaml.AliasNode {
		target := e.expand(n.Alias, depth+1)
		target.HeadComment, target.LineComment, target.FootComment = n.HeadComment, n.LineComment, n.FootComment
		return target
	}
	out := *n
	out.Anchor, out.Alias, out.Content = "", nil, nil
	out.Style &^= yaml.TaggedStyle
	if n.Kind == yaml.MappingNode {
		e.mapping(n, &out, depth)
		return &out
	}
	for _, c := range n.Content {
		out.Content = append(out.Content, e.expand(c, depth+1))
	}
	return &out
}

// mapping copies the pairs of a map, and then the pairs that `<<: *anchor` adds for missing keys.
func (e *expander) mapping(n, out *yaml.Node, depth int) {
	given := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content) && e.err == nil; i += 2 {
		k, v := n.Content[i], e.expand(n.Content[i+1], depth+1)
		switch {
		case k.Tag == "!!merge":
			merged = append(merged, e.merged(v)...)
			continue
		case k.Kind != yaml.ScalarNode || k.Value == "":
			e.fail(k, "keys must be words")
		case given[k.Value]:
			e.fail(k, "duplicate key %q", k.Value)
		}
		given[k.Value] = true
		out.Content = append(out.Content, e.expand(k, depth+1), v)
	}
	for i := 0; i+1 < len(merged); i += 2 {
		if k := merged[i]; !given[k.Value] {
			given[k.Value] = true
			out.Content = append(out.Content, k, merged[i+1])
		}
	}
}

// merged returns the pairs of a map, or of a list of maps.
func (e *expander) merged(v *yaml.Node) (pairs []*yaml.Node) {
	switch v.Kind {
	case yaml.MappingNode:
		return v.Content
	case yaml.SequenceNode:
		for _, c := range v.Content {
			if c.Kind == yaml.MappingNode {
				pairs = append(pairs, c.Content...)
				continue
			}
			e.fail(v, "<< needs an alias of a map, or a list of such aliases")
		}
		return pairs
	}
	e.fail(v, "<< needs an alias of a map, or a list of such aliases")
	return nil
}

// render returns the document as YAML, with the notes as comments.
func (d *document) render() ([]byte, error) {
	marker := d.marker()
	root := copyNode(d.root.node)
	tidy(root, marker)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	doc := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{root}, HeadComment: d.head, FootComment: d.foot}
	if err := errors.Join(enc.Encode(doc), enc.Close()); err != nil {
		return nil, fmt.Errorf("cannot write YAML: %w", err)
	}
	return d.separate(d.writeNotes(out.Bytes(), marker)), nil
}

// topLevel matches the first line of a section, and its comments.
var topLevel = regexp.MustCompile(`(?m)(?:^#.*\n)*^[^\s#-]`)

// separate writes an empty line between sections, if the input has empty lines.
func (d *document) separate(text []byte) []byte {
	if !strings.Contains(d.source, "\n\n") {
		return text
	}
	out := topLevel.ReplaceAll(text, []byte("\n$0"))
	return bytes.TrimPrefix(out, []byte("\n"))
}

// marker returns a word that does not occur in the input.
func (d *document) marker() string {
	m := "note-"
	for strings.Contains(d.source, m) {
		m += "x-"
	}
	return m
}

// tidy prepares a tree for output. Notes in lists that are written on one line move in front of the
// key of the list, or are returned if that key is not in n. Maps with notes or empty values are
// written as blocks, because in braces an empty value would become a text. Empty maps that were not
// written as {} become empty values.
func tidy(n *yaml.Node, marker string) (notes []*yaml.Node) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == noteTag {
			n.Tag, n.Value = "!!str", marker+n.Value
		}
	case yaml.SequenceNode:
		return tidyList(n, marker)
	case yaml.MappingNode:
		tidyMap(n, marker)
	}
	return nil
}

func tidyList(n *yaml.Node, marker string) (notes []*yaml.Node) {
	var items []*yaml.Node
	for _, c := range n.Content {
		if len(c.Content) > 0 && hasNotes(c) {
			n.Style &^= yaml.FlowStyle
		}
	}
	hoist := n.Style&yaml.FlowStyle != 0
	for _, c := range n.Content {
		isNote := c.Tag == noteTag
		notes = append(notes, tidy(c, marker)...)
		if isNote && hoist {
			notes = append(notes, c)
			continue
		}
		items = append(items, c)
	}
	n.Content = items
	if len(items) == 0 {
		n.Style |= yaml.FlowStyle
	}
	return notes
}

func tidyMap(n *yaml.Node, marker string) {
	var pairs []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		isNote := k.Tag == noteTag
		tidy(k, marker)
		notes := tidy(v, marker)
		empty := v.Kind == yaml.ScalarNode && v.Tag == "!!null" && v.Value == ""
		if isNote || empty || len(notes) > 0 || len(v.Content) > 0 && v.Style&yaml.FlowStyle == 0 {
			n.Style &^= yaml.FlowStyle
		}
		for _, note := range notes {
			pairs = append(pairs, note, emptyNode())
		}
		pairs = append(pairs, k, v)
	}
	n.Content = pairs
	if len(pairs) == 0 && n.Style&yaml.FlowStyle == 0 {
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!null", ""
	}
}

// hasNotes reports whether there are notes in a value.
func hasNotes(n *yaml.Node) bool { return n.Tag == noteTag || slices.ContainsFunc(n.Content, hasNotes) }

func emptyNode() *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"} }
