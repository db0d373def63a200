package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// resolveReferences finds the component that each Ref names.
func (l *loader) resolveReferences() {
	for _, c := range l.components {
		for i := range c.References {
			l.resolve(&c.References[i])
		}
	}
}

func (l *loader) resolve(r *Reference) {
	want, id := r.ref.Interface(), r.ref.ID()
	var named *Component
	for _, kind := range []pipeline.Kind{pipeline.KindExtension, pipeline.KindExporter} {
		key := Key{kind, id}
		if l.broken[key] {
			return
		}
		if c, ok := l.config.components[key]; ok {
			named = c
			if c.Factory.ComponentType().Implements(want) {
				r.Target = c
			}
		}
	}
	switch {
	case r.Target != nil:
		if err := r.Target.lacks(want); err != nil {
			l.problem(l.valuePos(r.path), r.path, "%s is not %s: %v%s", r.Target.Key, r.expected, err, l.suggest(id, want))
		}
	case named == nil:
		l.problem(l.valuePos(r.path), r.path, "no exporter or extension %q is configured; this key needs %s%s",
			id, r.expected, l.suggest(id, want))
	default:
		l.problem(l.valuePos(r.path), r.path, "%s is not %s%s", named.Key, r.expected, l.suggest(id, want))
	}
}

// suggest returns the end of an error about a reference to id: the components that could be
// referenced instead.
func (l *loader) suggest(id pipeline.ID, want reflect.Type) string {
	fit := l.suitable(want)
	if len(fit) == 0 {
		return "; none is configured"
	}
	return yamltree.Suggest(id.String(), fit, "these are")
}

// suitable returns the components that a reference to want may name.
func (l *loader) suitable(want reflect.Type) (ids []string) {
	for _, c := range l.components {
		if (c.Key.Kind == pipeline.KindExporter || c.Key.Kind == pipeline.KindExtension) &&
			c.Factory.ComponentType().Implements(want) && c.lacks(want) == nil {
			ids = append(ids, c.Key.ID.String())
		}
	}
	return ids
}

// lacks returns why a component that implements want cannot be used as a want, or nil if it can.
func (c *Component) lacks(want reflect.Type) error {
	if l, ok := c.Value.(pipeline.Limited); ok {
		return l.Lacks(want)
	}
	return nil
}

// checkCycles reports cycles of references.
func (l *loader) checkCycles() {
	const (
		visiting = 1
		done     = 2
	)
	state := map[*Component]int{}
	var visit func(c *Component, path []*Component)
	visit = func(c *Component, path []*Component) {
		state[c] = visiting
		path = append(path, c)
		for _, r := range c.References {
			switch {
			case r.Target == nil || state[r.Target] == done:
			case state[r.Target] == visiting:
				l.reportCycle(r, path[slices.Index(path, r.Target):])
			default:
				visit(r.Target, path)
			}
		}
		state[c] = done
	}
	for _, c := range l.components {
		if state[c] == 0 {
			visit(c, nil)
		}
	}
}

func (l *loader) reportCycle(last Reference, cycle []*Component) {
	var ids []string
	for _, c := range cycle {
		ids = append(ids, c.Key.ID.String())
	}
	l.problem(l.valuePos(last.path), last.path, "circular references: %s -> %s", strings.Join(ids, " -> "), last.Target.Key.ID)
}
