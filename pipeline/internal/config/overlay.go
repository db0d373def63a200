package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// overlay turns flags into sources that override presets and files. The effect of a flag depends on
// the configuration without it, so the overlay works on a merged tree.
type overlay struct {
	base     *loader // the configuration without the remaining flags
	options  *Options
	below    []yamltree.Source // presets and files
	sources  []yamltree.Source
	problems yamltree.Problems
	warnings yamltree.Problems
}

// newOverlay returns the sources of all flags in o, in order of precedence, and their problems.
func newOverlay(o *Options, below []yamltree.Source) *overlay {
	out := &overlay{options: o, below: below}
	out.reload()
	for rank := range rankOptional + 1 {
		out.applyRank(rank)
	}
	return out
}

// reload merges the sources so far into the configuration that the next flags are applied to.
func (o *overlay) reload() {
	o.base = newLoader(o.options, slices.Concat(o.below, o.sources))
}

// applyRank applies the flags of one rank. Flags that add a component take effect before the next
// flag, all others before the next rank.
func (o *overlay) applyRank(rank int) {
	before, given := len(o.sources), o.ordered(rank)
	if rank == rankOptional && len(given) > 0 {
		o.reload()
	}
	for _, g := range given {
		o.apply(g)
		if rank == rankAdds {
			o.reload()
			o.retarget(g)
		}
	}
	if (rank == rankApplied || rank == rankStructural) && len(o.sources) > before {
		o.reload()
	}
}

// ordered returns the flags of a rank, with environment variables first. Flags that add components
// are sorted by name: processors that are added later come first in a pipeline, so
// --downsampling.ratio comes after --sampling-config.type there.
func (o *overlay) ordered(rank int) []GivenFlag {
	var given []GivenFlag
	for _, g := range o.options.Flags {
		if g.rank() == rank {
			given = append(given, g)
		}
	}
	if rank == rankAdds {
		slices.SortStableFunc(given, func(a, b GivenFlag) int { return strings.Compare(a.Flag.Name, b.Flag.Name) })
	}
	return given
}

// pos returns a position for messages about a flag, which sorts after positions in files.
func (o *overlay) pos(g GivenFlag) yamltree.Pos {
	return yamltree.Pos{Source: g.source(), Order: len(o.below) + len(o.sources)}
}

func (o *overlay) problem(g GivenFlag, format string, args ...any) {
	o.problems = append(o.problems, yamltree.Problem{Pos: o.pos(g), Msg: fmt.Sprintf(format, args...)})
}

func (o *overlay) warn(g GivenFlag, format string, args ...any) {
	o.warnings = append(o.warnings, yamltree.Problem{Pos: o.pos(g), Msg: fmt.Sprintf(format, args...)})
}

// absent reports that a flag applies to something that is not configured. For an environment
// variable, which other programs may use as well, it is only a warning.
func (o *overlay) absent(g GivenFlag, format string, args ...any) {
	if g.Env {
		o.warn(g, "has no effect: "+format, args...)
		return
	}
	o.problem(g, format, args...)
}

// set sets one value of the configuration.
func (o *overlay) set(g GivenFlag, path []string, value any) {
	o.sources = append(o.sources, yamltree.Source{Name: g.source(), Path: path, YAML: yamlText(value)})
}

// yamlText returns a value as YAML. Strings are quoted, so that they cannot add structure or refer
// to variables.
func yamlText(value any) []byte {
	text := func(s string) string { return strconv.Quote(strings.ReplaceAll(s, "$", "$$")) }
	switch v := value.(type) {
	case nil: // removes the key
		return []byte("null")
	case struct{}: // a block with its defaults
		return nil
	case string:
		return []byte(text(v))
	case []string:
		items := make([]string, len(v))
		for i, s := range v {
			items[i] = text(s)
		}
		return []byte("[" + strings.Join(items, ", ") + "]")
	case map[string]string:
		var items []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			items = append(items, text(key)+": "+text(v[key]))
		}
		return []byte("{" + strings.Join(items, ", ") + "}")
	default: // a bool or an int
		return fmt.Append(nil, v)
	}
}

func (o *overlay) apply(g GivenFlag) {
	switch {
	case g.Flag.Apply != nil:
		g.Flag.Apply(flagTarget{o, g}, g.Text)
		return
	case g.Flag.Refused != "":
		o.absent(g, "%s", g.Flag.Refused)
		return
	case g.Flag.Instead != "" && (g.Flag.Always == "" || g.Text != g.Flag.Always):
		o.warn(g, "has no effect: %s", g.Flag.Instead)
		return
	case g.Flag.Instead != "":
		return
	}
	var missing []string
	applied := false
	for _, owner := range g.Flag.owners {
		reason := o.applyTo(g, owner)
		if reason != "" && !slices.Contains(missing, reason) { // a component may have several listeners with the flag
			missing = append(missing, reason)
		}
		applied = applied || reason == ""
	}
	if !applied {
		o.absent(g, "%s", strings.Join(missing, ", and "))
	}
}

// applyTo sets the key of one owner. If the owner is not configured, it returns a sentence saying
// so.
func (o *overlay) applyTo(g GivenFlag, owner flagOwner) (missing string) {
	var path []string
	if owner.kind != 0 {
		if owner.flag.Adds && !o.configured(owner) {
			return o.add(g, owner)
		}
		id, reason := o.instance(owner)
		if reason != "" {
			return reason
		}
		path = []string{owner.kind.Section(), id.String()}
		if owner.flag.Adds && g.Text == "" {
			o.remove(g, owner.kind, id.String())
			return ""
		}
		switch {
		case o.applies(owner.flag, path):
		case owner.flag.Optional != "":
			o.warn(g, "has no effect: %s", owner.flag.Optional)
			return ""
		case owner.flag.Missing != "":
			o.problem(g, "%s", owner.flag.Missing)
			return ""
		default:
			return fmt.Sprintf("%s %s has no %s", owner.kind, id, yamltree.Display(split(owner.flag.Block)...))
		}
	}
	value, err := flagValue(owner.flag, g.Text)
	switch {
	case err != nil:
		o.problem(g, "%v", err)
	case (owner.flag.Adds || owner.flag.Selects) && value == nil:
	case owner.flag.Key == "":
		if value == false {
			o.remove(g, owner.kind, path[1])
		}
	default:
		o.set(g, slices.Concat(path, split(owner.flag.Key)), value)
	}
	return ""
}

// applies reports whether the block that a flag requires is configured in the component at path.
func (o *overlay) applies(f pipeline.Flag, path []string) bool {
	if !o.base.tree.Has(slices.Concat(path, split(f.Block))...) {
		return false
	}
	if f.Unless == "" {
		return true
	}
	value, _ := o.base.tree.Get(slices.Concat(path, split(f.Unless))...).(yamltree.Scalar)
	off, err := strconv.ParseBool(value.Text)
	return err != nil || !off
}

// flagValue converts the text of a flag. A flag without a key is a switch of its component.
func flagValue(f pipeline.Flag, text string) (any, error) {
	switch {
	case f.Value != nil:
		return f.Value(text)
	case f.Presence:
		if on, err := strconv.ParseBool(text); err != nil || !on {
			return nil, notBool(text, err)
		}
		return struct{}{}, nil
	case f.Key == "" || f.Switch:
		on, err := strconv.ParseBool(text)
		return on, notBool(text, err)
	}
	return text, nil
}

func notBool(text string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%q is not true or false", text)
}

func split(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, yamltree.Delim)
}

// instance returns the component that a flag applies to: the one without a name, or the only one of
// the type. If there is none, it returns a sentence saying so.
func (o *overlay) instance(owner flagOwner) (pipeline.ID, string) {
	var ids []string
	for _, c := range o.base.components {
		switch id := c.Key.ID; {
		case c.Key.Kind != owner.kind || c.Factory.Type() != owner.typ:
		case id.Name == "":
			return id, ""
		default:
			ids = append(ids, id.String())
		}
	}
	switch len(ids) {
	case 0:
		return pipeline.ID{}, fmt.Sprintf("no %s of type %s is configured%s", owner.kind, owner.typ, o.adders(owner))
	case 1:
		id, _ := pipeline.ParseID(ids[0]) // it was parsed before
		return id, ""
	}
	return pipeline.ID{}, fmt.Sprintf("which of %s is meant is ambiguous; use --set", strings.Join(ids, ", "))
}

// remove removes a component from the configuration and from all lists.
func (o *overlay) remove(g GivenFlag, kind pipeline.Kind, id string) {
	without := func(path ...string) {
		if list := o.list(path...); slices.Contains(list, id) {
			o.set(g, path, slices.DeleteFunc(list, func(s string) bool { return s == id }))
		}
	}
	if kind == pipeline.KindExtension {
		without("service", "extensions")
	} else {
		for _, p := range o.base.tree.Keys("service", "pipelines") {
			without("service", "pipelines", p, kind.Section())
		}
	}
	o.set(g, []string{kind.Section(), id}, nil)
}

// list returns the items of a list.
func (o *overlay) list(path ...string) []string { return listItems(o.base.tree, path) }
