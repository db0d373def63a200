package conf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxNodes bounds a source, aliases expanded: a few lines of YAML can name billions of nodes.
const maxNodes = 100_000

// maxDepth bounds the nesting of a source.
const maxDepth = 64

// parser reads one source into a tree and notes positions.
type parser struct {
	source   string
	order    int
	expand   *Expander
	tree     *Tree
	problems Problems
	nodes    int
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

// parse fills p.tree from b. What cannot be parsed at all is one problem.
func (p *parser) parse(b []byte) {
	whole := Pos{Source: p.source, Order: p.order, Line: 1, Col: 1}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return
	case err != nil:
		p.syntaxError(string(b), whole, err)
		return
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		p.problem(p.pos(&second), nil, "a second YAML document begins here; put each into a file of its own and give --config twice")
	} else if !errors.Is(err, io.EOF) {
		p.syntaxError(string(b), whole, err)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return
	}
	if root.Kind != yaml.MappingNode {
		p.problem(p.pos(root), nil, "the file must hold keys such as receivers, exporters and service, not %s", describe(root))
		return
	}
	p.tree.Root = p.mapping(root, nil)
}

func (p *parser) syntaxError(b string, whole Pos, err error) {
	msg := err.Error()
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		msg = msg[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
			whole.Line = n
		}
	}
	if strings.Contains(b, "${") {
		msg += "; inside { } and [ ] a value with ${...} must be quoted"
	}
	p.problem(whole, nil, "this is not YAML: %s", msg)
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", n.Value)
}

// node returns the tree below n, or nil when the source is too large.
func (p *parser) node(n *yaml.Node, path []string) any {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if p.nodes++; p.nodes > maxNodes || len(path) > maxDepth {
		if p.nodes != maxNodes+2 {
			p.problem(p.pos(n), path, "the configuration is too large: more than %d values or %d levels", maxNodes, maxDepth)
			p.nodes = maxNodes + 1
		}
		return nil
	}
	p.tree.vals[Join(path...)] = p.pos(n)
	switch n.Kind {
	case yaml.MappingNode:
		return p.mapping(n, path)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for i, c := range n.Content {
			at := append(path[:len(path):len(path)], strconv.Itoa(i))
			p.tree.keys[Join(at...)] = p.pos(c)
			if v := p.node(c, at); v != nil {
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
		if n.Value == "" {
			return Scalar{Empty: true}
		}
		return removal{}
	}
	text, err := p.expand.Expand(n.Value)
	if err != nil {
		// A problem only if nothing overrides the value: whoever reads it reports it.
		return Scalar{Text: n.Value, Quoted: quoted, Bad: err.Error()}
	}
	return Scalar{Text: text, Quoted: quoted}
}

func (p *parser) mapping(n *yaml.Node, path []string) map[string]any {
	out := map[string]any{}
	given := map[string]int{} // key to line
	for _, kv := range p.pairs(n, path) {
		k, v := kv[0], kv[1]
		if k.Kind != yaml.ScalarNode || k.Value == "" || strings.Contains(k.Value, Delim) {
			p.problem(p.pos(k), path, "a key must be a word without %q", Delim)
			continue
		}
		if line, dup := given[k.Value]; dup {
			p.problem(p.pos(k), path, "key %q was already given on line %d", k.Value, line)
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

// pairs returns keys and values of a map, and behind them those that YAML's `<<: *anchor` adds because they are not given.
func (p *parser) pairs(n *yaml.Node, path []string) [][2]*yaml.Node {
	var pairs, merged [][2]*yaml.Node
	given := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag != "!!merge" {
			pairs = append(pairs, [2]*yaml.Node{k, v})
			given[k.Value] = true
			continue
		}
		for v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		if v.Kind != yaml.MappingNode {
			p.problem(p.pos(v), path, "<< takes an alias of a map")
			continue
		}
		for j := 0; j+1 < len(v.Content); j += 2 {
			merged = append(merged, [2]*yaml.Node{v.Content[j], v.Content[j+1]})
		}
	}
	for _, kv := range merged {
		if !given[kv[0].Value] {
			given[kv[0].Value] = true
			pairs = append(pairs, kv)
		}
	}
	return pairs
}
