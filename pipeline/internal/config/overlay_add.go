package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// configured reports whether there is a component of the owner's type, in a pipeline or not.
func (o *overlay) configured(owner flagOwner) bool {
	for _, c := range o.base.components {
		if c.Key.Kind == owner.kind && c.Factory.Type() == owner.typ {
			return true
		}
	}
	return false
}

// add adds a component with the flag's key to the configuration and to a pipeline. An empty value
// adds nothing.
func (o *overlay) add(g GivenFlag, owner flagOwner) (missing string) {
	if g.Text == "" {
		return ""
	}
	id, reason := o.mainPipeline()
	if reason != "" {
		return reason
	}
	value, err := flagValue(owner.flag, g.Text)
	if err != nil {
		o.problem(g, "%v", err)
		return ""
	}
	if value == nil {
		return ""
	}
	section := owner.kind.Section()
	list := []string{"service", "pipelines", id, section}
	members := append(o.list(list...), owner.typ)
	if owner.kind == pipeline.KindProcessor {
		members = slices.Concat(members[len(members)-1:], members[:len(members)-1])
	}
	o.set(g, slices.Concat([]string{section, owner.typ}, split(owner.flag.Key)), value)
	o.set(g, list, members)
	return ""
}

// retarget changes references that a flag has set to an unconfigured component. They get the only
// suitable component, if there is exactly one.
func (o *overlay) retarget(g GivenFlag) {
	before := len(o.sources)
	for _, c := range o.base.components {
		for _, r := range c.References {
			if r.Target != nil || o.base.valuePos(r.path).Source != g.source() {
				continue
			}
			if fit := o.base.suitable(r.ref.Interface()); len(fit) == 1 {
				o.set(g, r.path, fit[0])
			}
		}
	}
	if len(o.sources) > before {
		o.reload()
	}
}

// mainPipeline returns the pipeline `traces`, or the only one of spans.
func (o *overlay) mainPipeline() (id, missing string) {
	ids := slices.DeleteFunc(o.base.tree.Keys("service", "pipelines"), func(id string) bool { return strings.HasPrefix(id+"/", typeLogs+"/") })
	switch {
	case slices.Contains(ids, typeTraces):
		return typeTraces, ""
	case len(ids) == 1:
		return ids[0], ""
	}
	return "", "which pipeline is meant is ambiguous: none is called traces"
}

// adders returns the end of a message: the flags that add a component of the owner's type, if any.
func (o *overlay) adders(owner flagOwner) string {
	var names []string
	for _, f := range o.base.factories[owner.kind][owner.typ].FlagList() {
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
