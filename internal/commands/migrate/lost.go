package migrate

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// setting is a value in the input that contains no other values.
type setting struct {
	path []string
	node *yaml.Node
}

// remember keeps the settings of the input for listLost.
func (d *document) remember() { d.input = settingsOf(d.root.node, nil) }

func settingsOf(n *yaml.Node, path []string) (all []setting) {
	switch {
	case n.Tag == noteTag:
	case len(n.Content) == 0:
		all = append(all, setting{path, n})
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			all = append(all, settingsOf(item, path)...)
		}
	default:
		b := &block{node: n}
		for _, key := range b.keys() {
			all = append(all, settingsOf(b.value(key), below(path, key))...)
		}
	}
	return all
}

// markListed records that notes cover a value and everything in it, or that copies of it are in the
// output.
func (d *document) markListed(n *yaml.Node) {
	if n == nil || d == nil {
		return
	}
	if d.listed == nil {
		d.listed = map[*yaml.Node]bool{}
	}
	d.listed[n] = true
	for _, c := range n.Content {
		d.markListed(c)
	}
}

// takeNotes removes the notes in a value, and returns them as pairs of a map.
func takeNotes(n *yaml.Node) (notes []*yaml.Node) {
	var content []*yaml.Node
	for i := 0; i < len(n.Content); i++ {
		switch c := n.Content[i]; {
		case c.Tag == noteTag && n.Kind == yaml.MappingNode:
			notes = append(notes, c, n.Content[i+1])
			i++
		case c.Tag == noteTag:
			notes = append(notes, c, emptyNode())
		default:
			notes = append(notes, takeNotes(c)...)
			content = append(content, c)
		}
	}
	n.Content = content
	return notes
}

// listLost lists the values of the input that are neither in the output nor covered by a note,
// because there is no rule for them.
func (d *document) listLost() {
	kept := map[*yaml.Node]bool{}
	var keep func(n *yaml.Node)
	keep = func(n *yaml.Node) {
		kept[n] = true
		for _, c := range n.Content {
			keep(c)
		}
	}
	keep(d.root.node)
	lost := map[noteKind][]string{}
	for _, s := range d.input {
		kind, path := dropped, strings.Join(s.path, ".")
		if sensitive.MatchString(path) {
			kind = decide
		}
		if !kept[s.node] && !d.listed[s.node] && !slices.Contains(lost[kind], path) {
			lost[kind] = append(lost[kind], path)
		}
	}
	for _, kind := range []noteKind{dropped, decide} {
		d.list(kind, lost[kind], "nothing takes the place of these settings")
	}
}

// list adds a note about several items at the top, if there are any.
func (d *document) list(kind noteKind, items []string, reason string) {
	if len(items) == 0 {
		return
	}
	d.root.noteAt(0, kind, "%s: %s", strings.Join(items, ", "), reason)
	d.notes[len(d.notes)-1].count = len(items)
}
