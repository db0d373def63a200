package yamltree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Limits for one source with all aliases expanded. Without them, a few lines of YAML with nested
// aliases could expand to billions of values or terabytes of text.
const (
	maxNodes = 20_000
	maxDepth = 64
	maxBytes = 16 << 20 // sum of texts and paths
)

// parser reads one source into a tree with positions.
type parser struct {
	source   string
	order    int
	expand   *Expander
	tree     *Tree
	problems Problems
	nodes    int
	bytes    int
	full     bool // a limit was exceeded; the problem was reported
}

func (p *parser) pos(n *yaml.Node) Pos {
	return Pos{Source: p.source, Order: p.order, Line: n.Line, Col: n.Column, EndLine: lastLine(n, maxDepth)}
}

func lastLine(n *yaml.Node, depth int) int {
	line := n.Line
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		line += strings.Count(n.Value, "\n")
	}
	if len(n.Content) > 0 && depth > 0 {
		line = max(line, lastLine(n.Content[len(n.Content)-1], depth-1))
	}
	return line
}

func (p *parser) problem(pos Pos, path []string, format string, args ...any) {
	p.problems = append(p.problems, Problem{Pos: pos, Path: Display(path...), Msg: fmt.Sprintf(format, args...)})
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parse fills p.tree from b, a whole file. A syntax error is a single problem.
func (p *parser) parse(b []byte) {
	root := p.document(b, Pos{Source: p.source, Order: p.order, Line: 1, Col: 1})
	if root == nil || root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return
	}
	if root.Kind != yaml.MappingNode {
		p.problem(p.pos(root), nil, "the file must have keys such as receivers, exporters and service, not %s", describe(root))
		return
	}
	p.tree.Root = p.mapping(root, nil)
}

// parseAt fills p.tree from b, the value at path. Positions have no lines.
func (p *parser) parseAt(path []string, b []byte) {
	whole := Pos{Source: p.source, Order: p.order}
	value := p.document(b, whole)
	if value == nil {
		value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	}
	for _, k := range slices.Backward(path) {
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: k}
		value = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, value}}
	}
	p.tree.Root = p.mapping(value, nil)
	for key := range p.tree.keys {
		p.tree.keys[key] = whole
	}
	for key := range p.tree.vals {
		p.tree.vals[key] = whole
	}
	for i := range p.problems {
		p.problems[i].Pos = whole
	}
}

// document returns the root of the document in b, or nil if b is empty or not YAML.
func (p *parser) document(b []byte, start Pos) *yaml.Node {
	if len(b) > maxBytes {
		p.problem(start, nil, "configuration too large: more than %d MiB", maxBytes>>20)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		p.syntaxError(start, err)
		return nil
	}
	if err := dec.Decode(&second); err == nil {
		p.problem(p.pos(&second), nil, "second YAML document; put it into a separate file and repeat --config")
	} else if !errors.Is(err, io.EOF) {
		p.syntaxError(start, err)
	}
	return doc.Content[0]
}

func (p *parser) syntaxError(whole Pos, err error) {
	if whole.Line == 0 { // the text is one value, which may be a secret
		p.problem(whole, nil, "value is not valid YAML; write it in quotes")
		return
	}
	msg := err.Error()
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		msg = msg[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
			whole.Line = n
		}
	}
	if strings.Contains(msg, "expected ',' or") {
		msg += "; inside { } and [ ] a value with ${...} must be quoted"
	}
	p.problem(whole, nil, "not valid YAML: %s", msg)
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	return "text" // of a file that may not be a configuration
}

// charge counts a value at depth with the bytes of its path and text. It returns false, and reports
// one problem, if the source is too large.
func (p *parser) charge(n *yaml.Node, depth, bytes int) bool {
	p.nodes++
	p.bytes += bytes
	if p.full {
		return false
	}
	if p.nodes <= maxNodes && depth <= maxDepth && p.bytes <= maxBytes {
		return true
	}
	p.full = true
	p.problem(p.pos(n), nil, "configuration too large: more than %d values, %d levels or %d MiB of text",
		maxNodes, maxDepth, maxBytes>>20)
	return false
}

// node returns the tree below n, or nil if the source is too large.
func (p *parser) node(n *yaml.Node, path []string) any {
	pos := p.pos(n) // of an alias, not of its anchor
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	at := Join(path...)
	if !p.charge(n, len(path), len(at)+len(n.Value)) {
		return nil
	}
	p.tree.vals[at] = pos
	switch n.Kind {
	case yaml.MappingNode:
		return p.mapping(n, path)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for i, c := range n.Content {
			at := append(path[:len(path):len(path)], strconv.Itoa(i))
			p.tree.keys[Join(at...)] = p.pos(c)
			switch v := p.node(c, at); v {
			case nil: // source too large
			case removal{}, Scalar{Empty: true, Null: true}:
				list = append(list, Scalar{Empty: true}) // in a list, null removes nothing, and an item has no default
			default:
				list = append(list, v)
			}
		}
		return list
	}
	return p.scalar(n, path)
}

func (p *parser) scalar(n *yaml.Node, path []string) any {
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if !quoted && n.ShortTag() == "!!null" {
		switch {
		case n.Value == "":
			return Scalar{Empty: true}
		case p.order == 0: // nothing precedes the first source that null could remove
			return Scalar{Empty: true, Null: true}
		}
		return removal{}
	}
	p.expand.included = nil
	text, err := p.expand.Expand(n.Value)
	if err != nil {
		// It is not a problem if another source overrides the value, so decode reports it.
		return Scalar{Text: n.Value, Quoted: quoted, Bad: err.Error()}
	}
	p.bytes += len(text)
	p.include(path, included{text: text, written: n.Value})
	s := Scalar{Text: text, Quoted: quoted}
	if len(p.expand.included) > 0 {
		s.Written = n.Value
	}
	return s
}

// include records the scalar at path and the values of variables and files in it if they may be
// secrets. If the scalar is not a secret, for example an address, neither are its variables.
func (p *parser) include(path []string, whole included) {
	if len(p.expand.included) == 0 {
		return
	}
	for _, v := range append([]included{whole}, p.expand.included...) {
		if v.mayBeSecret() && (whole.mayBeSecret() || v.isFile()) {
			p.tree.included = append(p.tree.included, included{Display(path...), v.text, v.written})
		}
	}
}

func (p *parser) mapping(n *yaml.Node, path []string) map[string]any {
	out := map[string]any{}
	given := map[string]int{} // line by key
	for _, kv := range p.pairs(n, path, 0) {
		k, v := kv[0], kv[1]
		if k.Kind != yaml.ScalarNode || k.Value == "" || strings.Contains(k.Value, Delim) {
			p.problem(p.pos(k), path, "keys must be words without %q", Delim)
			continue
		}
		if line, dup := given[k.Value]; dup {
			p.problem(p.pos(k), path, "duplicate key %q; first given on line %d", k.Value, line)
			continue
		}
		given[k.Value] = k.Line
		at := append(path[:len(path):len(path)], k.Value)
		pos := p.pos(k)
		pos.EndLine = max(pos.EndLine, lastLine(v, maxDepth))
		p.tree.keys[Join(at...)] = pos
		if val := p.node(v, at); val != nil {
			out[k.Value] = val
		}
	}
	return out
}

// pairs returns the keys and values of a map, then those that YAML's `<<: *anchor` adds if they are
// not given. merges is the number of such merges so far, because a map can merge itself.
func (p *parser) pairs(n *yaml.Node, path []string, merges int) [][2]*yaml.Node {
	var pairs, merged [][2]*yaml.Node
	given := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag == "!!merge" {
			merged = append(merged, p.merged(v, path, merges+1)...)
			continue
		}
		pairs = append(pairs, [2]*yaml.Node{k, v})
		given[k.Value] = true
	}
	for _, kv := range merged {
		if !given[kv[0].Value] {
			given[kv[0].Value] = true
			pairs = append(pairs, kv)
		}
	}
	return pairs
}

// merged returns the pairs that the value of a `<<` adds. The value is a map, or a list of maps in
// which earlier maps take precedence.
func (p *parser) merged(v *yaml.Node, path []string, merges int) [][2]*yaml.Node {
	for v.Kind == yaml.AliasNode {
		v = v.Alias
	}
	if !p.charge(v, len(path)+merges, 0) {
		return nil
	}
	switch v.Kind {
	case yaml.MappingNode:
		pairs := p.pairs(v, path, merges)
		p.nodes += len(pairs)
		return pairs
	case yaml.SequenceNode:
		var all [][2]*yaml.Node
		for _, c := range v.Content {
			all = append(all, p.merged(c, path, merges+1)...)
		}
		return all
	}
	p.problem(p.pos(v), path, "<< needs an alias of a map, or a list of such aliases")
	return nil
}
