package pipeline

import (
	"fmt"
	"slices"
	"strings"
)

// configured reports whether there is a component of the owner's type, listed in a pipeline or not.
func (o *overlayer) configured(owner flagOwner) bool {
	for _, c := range o.base.components {
		if c.key.kind == owner.kind && c.key.id.Type == owner.typ {
			return true
		}
	}
	return false
}

// add puts a component that is not configured yet into the configuration, with the flag's key, and into its pipeline. An empty value adds
// nothing.
func (o *overlayer) add(g givenFlag, owner flagOwner) (missing string) {
	if g.text == "" {
		return ""
	}
	pipeline, reason := o.mainPipeline()
	if reason != "" {
		return reason
	}
	value, err := owner.flag.value(g.text)
	if err != nil {
		o.problem(g, "%v", err)
		return ""
	}
	if value == nil {
		return ""
	}
	section := owner.kind.section()
	list := []string{"service", "pipelines", pipeline, section}
	members := append(o.list(list...), owner.typ)
	if owner.kind == KindProcessor {
		members = slices.Concat(members[len(members)-1:], members[:len(members)-1])
	}
	o.set(g, slices.Concat([]string{section, owner.typ}, split(owner.flag.Key)), value)
	o.set(g, list, members)
	return ""
}

// mainPipeline returns the pipeline `traces`, or the only one.
func (o *overlayer) mainPipeline() (id, missing string) {
	ids := o.base.tree.Keys("service", "pipelines")
	switch {
	case slices.Contains(ids, "traces"):
		return "traces", ""
	case len(ids) == 1:
		return ids[0], ""
	}
	return "", "it is open which pipeline is meant: none is called traces"
}

// adders says which flags would add a component of the owner's type; "" if none would.
func (o *overlayer) adders(owner flagOwner) string {
	var names []string
	for _, f := range o.base.factories[owner.kind][owner.typ].flags {
		if f.Adds {
			names = append(names, "--"+f.Name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; %s adds one", names[0])
	}
	return fmt.Sprintf("; %s add one", strings.Join(names, " and "))
}
