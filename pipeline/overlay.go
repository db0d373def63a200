package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/internal/conf"
)

// overlayer turns flags into sources that lie over the presets and files. What a flag means depends on what these configure, so it works
// on the tree that they merge to.
type overlayer struct {
	base     *loader // what is configured without the flags
	below    int     // how many sources that is
	sources  []conf.Source
	problems conf.Problems
	warnings conf.Problems
}

// overlay returns the sources of all flags, in the order of their precedence, and what is wrong with them.
func (o *LoadOptions) overlay(below []conf.Source) *overlayer {
	out := &overlayer{base: o.read(below), below: len(below)}
	for rank := range rankValue + 1 {
		out.applyRank(o, below, rank)
	}
	return out
}

// applyRank applies the flags of one rank. What they made of the configuration is there for the next rank, and for the next flag if it
// added something.
func (o *overlayer) applyRank(load *LoadOptions, below []conf.Source, rank int) {
	before := len(o.sources)
	for _, g := range load.flags {
		if g.rank() != rank {
			continue
		}
		o.apply(g)
		if rank == rankAdds {
			o.base = load.read(slices.Concat(below, o.sources))
		}
	}
	if rank == rankStructural && len(o.sources) > before {
		o.base = load.read(slices.Concat(below, o.sources))
	}
}

// pos places messages about a flag behind those about files.
func (o *overlayer) pos(g givenFlag) conf.Pos {
	return conf.Pos{Source: g.source(), Order: o.below + len(o.sources)}
}

func (o *overlayer) problem(g givenFlag, format string, args ...any) {
	o.problems = append(o.problems, conf.Problem{Pos: o.pos(g), Msg: fmt.Sprintf(format, args...)})
}

// warn leaves out the value: warnings are logged, and it may be a secret.
func (o *overlayer) warn(g givenFlag, format string, args ...any) {
	pos := o.pos(g)
	pos.Source = originText(pos)
	o.warnings = append(o.warnings, conf.Problem{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// absent reports that a flag addresses what is not configured. An environment is shared by programs, so there it is only a warning.
func (o *overlayer) absent(g givenFlag, format string, args ...any) {
	if g.env {
		o.warn(g, "has no effect: "+format, args...)
		return
	}
	o.problem(g, format, args...)
}

// set makes one value of the configuration that of a flag.
func (o *overlayer) set(g givenFlag, path []string, value any) {
	o.sources = append(o.sources, conf.Source{Name: g.source(), Path: path, YAML: yamlText(value)})
}

// yamlText returns a value as YAML that means just that: nothing in a text adds structure or refers to a variable.
func yamlText(value any) []byte {
	text := func(s string) string { return strconv.Quote(strings.ReplaceAll(s, "$", "$$")) }
	switch v := value.(type) {
	case nil: // takes the key away
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

func (o *overlayer) apply(g givenFlag) {
	if g.Name == storageFlag {
		o.replaceStore(g)
		return
	}
	if g.Instead != "" {
		o.warn(g, "has no effect: %s", g.Instead)
		return
	}
	var missing []string
	applied := false
	for _, owner := range g.owners {
		reason := o.applyTo(g, owner)
		if reason != "" && !slices.Contains(missing, reason) { // one component may have several listeners
			missing = append(missing, reason)
		}
		applied = applied || reason == ""
	}
	if !applied {
		o.absent(g, "%s", strings.Join(missing, ", and "))
	}
}

// applyTo sets the key of one owner. Where the owner is not configured it returns a sentence that says so.
func (o *overlayer) applyTo(g givenFlag, owner flagOwner) (missing string) {
	var path []string
	if owner.kind != 0 {
		if owner.flag.Adds && !o.configured(owner) {
			return o.add(g, owner)
		}
		id, reason := o.instance(owner)
		if reason != "" {
			return reason
		}
		path = []string{owner.kind.section(), id.String()}
		if owner.flag.Adds && g.text == "" {
			o.unlist(g, owner.kind, id.String())
			return ""
		}
		switch {
		case o.means(owner.flag, path):
		case owner.flag.Missing != "":
			o.problem(g, "%s", owner.flag.Missing)
			return ""
		default:
			return fmt.Sprintf("%s %s has no %s", owner.kind, id, conf.Display(split(owner.flag.Block)...))
		}
	}
	value, err := owner.flag.value(g.text)
	switch {
	case err != nil:
		o.problem(g, "%v", err)
	case owner.flag.Adds && value == nil:
	case owner.flag.Key == "":
		if value == false {
			o.unlist(g, owner.kind, path[1])
		}
	default:
		o.set(g, slices.Concat(path, split(owner.flag.Key)), value)
	}
	return ""
}

// means reports whether what the flag is about is configured in the component at path.
func (o *overlayer) means(f Flag, path []string) bool {
	if !o.base.tree.Has(slices.Concat(path, split(f.Block))...) {
		return false
	}
	if f.Unless == "" {
		return true
	}
	value, _ := o.base.tree.Get(slices.Concat(path, split(f.Unless))...).(conf.Scalar)
	off, err := strconv.ParseBool(value.Text)
	return err != nil || !off
}

// value converts what was given. A flag without a key is a switch of its component.
func (f Flag) value(text string) (any, error) {
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
	return strings.Split(path, conf.Delim)
}

// instance finds the component that a flag means: the one without a name, or the only one of the type.
func (o *overlayer) instance(owner flagOwner) (ID, string) {
	var ids []string
	for _, c := range o.base.components {
		switch id := c.key.id; {
		case c.key.kind != owner.kind || id.Type != owner.typ:
		case id.Name == "":
			return id, ""
		default:
			ids = append(ids, id.String())
		}
	}
	switch len(ids) {
	case 0:
		return ID{}, fmt.Sprintf("no %s of type %s is configured%s", owner.kind, owner.typ, o.adders(owner))
	case 1:
		id, _ := ParseID(ids[0]) // it was one already
		return id, ""
	}
	return ID{}, fmt.Sprintf("it is open which of %s is meant; use --set", strings.Join(ids, ", "))
}

// unlist takes a component out of everything that lists it, and away.
func (o *overlayer) unlist(g givenFlag, kind Kind, id string) {
	without := func(path ...string) {
		if list := o.list(path...); slices.Contains(list, id) {
			o.set(g, path, slices.DeleteFunc(list, func(s string) bool { return s == id }))
		}
	}
	if kind == KindExtension {
		without("service", "extensions")
	} else {
		for _, p := range o.base.tree.Keys("service", "pipelines") {
			without("service", "pipelines", p, kind.section())
		}
	}
	o.set(g, []string{kind.section(), id}, nil)
}

// list returns the texts of a list.
func (o *overlayer) list(path ...string) []string {
	items, _ := o.base.tree.Get(path...).([]any)
	var out []string
	for _, item := range items {
		if s, ok := item.(conf.Scalar); ok {
			out = append(out, s.Text)
		}
	}
	return out
}
