package migrate

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/tracing-backend/tracing/pipeline/app"
)

// jaeger1Program is one process of Jaeger 1: its flags and variables.
type jaeger1Program struct {
	name    string // name of the service, or "" if there is only one program
	preset  string // that takes its place
	args    []string
	environ []string // NAME=value
	lists   []listing
}

// document returns the configuration of a program: the preset that replaces it, with the values
// that the program would have.
func (p *jaeger1Program) document(in Input) (*document, error) {
	i := slices.IndexFunc(in.Presets, func(preset app.Preset) bool { return preset.Name == p.preset })
	if i < 0 {
		return nil, fmt.Errorf("preset %s is missing in this build", p.preset)
	}
	d, err := newDocument(string(in.Presets[i].YAML))
	if err != nil {
		return nil, err
	}
	if p.name != "" {
		d.head = fmt.Sprintf("# service %s: run `tracing --config FILE` with this document; in a container, set TRACING_LISTEN_HOST=0.0.0.0", p.name)
	}
	edits, notes, err := app.FlagEffects(app.LoadOptions{Factories: in.Components, Presets: in.Presets, Preset: p.preset}, p.args, p.environ)
	if err != nil {
		return nil, err
	}
	for i, e := range edits {
		others := slices.Delete(slices.Clone(edits), i, i+1)
		d.edit(e, !slices.ContainsFunc(others, func(o app.FlagEdit) bool { return o.Flag == e.Flag }))
	}
	if p.preset == "ingester" {
		d.ingesterDefaults(edits)
	}
	first := d.root.keys()[0]
	for _, l := range p.lists {
		d.list(l.kind, l.items, l.reason)
	}
	for _, n := range mergeNotes(notes) {
		switch {
		case n.Unknown && in.Process && !jaeger1Variable.MatchString(n.Flag+"="):
			continue
		case n.Mistake:
			d.root.note(decide, first, "%s: %s", n.Flag, n.Text)
		case n.Text == "":
			d.root.note(dropped, first, "%s: already the default", n.Flag)
		default:
			text, without := strings.CutPrefix(n.Text, "has no effect: ")
			d.root.note(kindOf(without), first, "%s: %s", n.Flag, text)
		}
		d.notes[len(d.notes)-1].count = 1 + strings.Count(n.Flag, ", ")
	}
	return d, nil
}

func kindOf(withoutEffect bool) noteKind {
	if withoutEffect {
		return dropped
	}
	return changed
}

// mergeNotes joins notes with the same text, such as those about a family of flags.
func mergeNotes(notes []app.FlagNote) (merged []app.FlagNote) {
	for _, n := range notes {
		i := slices.IndexFunc(merged, func(m app.FlagNote) bool { return m.Text == n.Text && m.Mistake == n.Mistake })
		if i < 0 {
			merged = append(merged, n)
			continue
		}
		if !slices.Contains(strings.Split(merged[i].Flag, ", "), n.Flag) {
			merged[i].Flag += ", " + n.Flag
		}
	}
	return merged
}

// edit sets a value for a flag, with a note above it. only is true if the flag sets nothing else.
func (d *document) edit(e app.FlagEdit, only bool) {
	last := len(e.Path) - 1
	parent, key := d.root.ensure(e.Path[:last]...), e.Path[last]
	var doc yaml.Node
	switch err := yaml.Unmarshal([]byte(e.YAML), &doc); {
	case err == nil && e.YAML == "null" && !parent.has(key):
		if only {
			parent.note(dropped, key, "%s: already the default", e.Flag)
		}
		return
	case err == nil && e.YAML == "null":
		parent.drop(key, "%s", e.Flag)
		return
	case err != nil || len(doc.Content) == 0: // a block with its defaults
		if !parent.has(key) {
			parent.setNode(key, emptyNode())
		}
	default:
		value := doc.Content[0]
		plainStyle(value)
		keepComment(parent.value(key), value)
		parent.setNode(key, value)
	}
	parent.note(changed, key, "%s", e.Flag)
}

// plainStyle removes quotes that a value does not need. Numbers are written without them, because
// the key determines the type.
func plainStyle(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Style = 0
		plain := yaml.Node{Kind: yaml.ScalarNode, Value: n.Value}
		if tag := plain.ShortTag(); tag == "!!int" || tag == "!!float" {
			n.Tag = tag
		}
	}
	for _, c := range n.Content {
		plainStyle(c)
	}
}

// keepComment keeps the comment on the line of a value.
func keepComment(old, value *yaml.Node) {
	if old != nil {
		value.LineComment = old.LineComment
	}
}
