package config

import (
	"cmp"
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// flagTarget implements [pipeline.FlagTarget] for the Apply function of a flag.
type flagTarget struct {
	*overlay
	given GivenFlag
}

var _ pipeline.FlagTarget = flagTarget{}

// Has implements pipeline.FlagTarget.
func (t flagTarget) Has(path ...string) bool { return t.base.tree.Has(path...) }

// Set implements pipeline.FlagTarget.
func (t flagTarget) Set(value any, path ...string) { t.set(t.given, path, value) }

// Remove implements pipeline.FlagTarget.
func (t flagTarget) Remove(kind pipeline.Kind, id pipeline.ID) { t.remove(t.given, kind, id.String()) }

// Exporters implements pipeline.FlagTarget.
func (t flagTarget) Exporters() (known, configured []string) {
	for _, c := range t.base.components {
		if c.Key.Kind == pipeline.KindExporter {
			configured = append(configured, c.Factory.Type())
		}
	}
	return t.exporters(nil), configured
}

// With implements pipeline.FlagTarget.
func (t flagTarget) With(text string) string {
	if t.given.Env {
		return t.given.Flag.Env() + "=" + text
	}
	return "--" + t.given.Flag.Name + "=" + text
}

// Problem implements pipeline.FlagTarget.
func (t flagTarget) Problem(format string, args ...any) { t.problem(t.given, format, args...) }

// Warn implements pipeline.FlagTarget.
func (t flagTarget) Warn(format string, args ...any) { t.warn(t.given, format, args...) }

// Absent implements pipeline.FlagTarget.
func (t flagTarget) Absent(format string, args ...any) { t.absent(t.given, format, args...) }

// Explains implements pipeline.FlagTarget.
func (t flagTarget) Explains() bool { return t.options.explain }

// Store implements pipeline.FlagTarget.
func (t flagTarget) Store() pipeline.FlagStore {
	var store pipeline.FlagStore
	t.eachReader(func(c *Component, r Reference) {
		store.Readers = append(store.Readers, pipeline.FlagReader{Kind: c.Key.Kind, ID: c.Key.ID})
		store.Expected = cmp.Or(store.Expected, r.expected)
		store.Written = store.Written || t.isWritten(r.Target)
	})
	return store
}

// eachReader calls f for each reference to an exporter.
func (t flagTarget) eachReader(f func(*Component, Reference)) {
	for _, c := range t.base.components {
		for _, r := range c.References {
			if r.Target != nil && r.Target.Key.Kind == pipeline.KindExporter {
				f(c, r)
			}
		}
	}
}

// isWritten reports whether a pipeline ends in the store.
func (t flagTarget) isWritten(store *Component) bool {
	return slices.ContainsFunc(t.base.config.Pipelines, func(p Pipeline) bool { return slices.Contains(p.Exporters, store) })
}

// ReplaceStore implements pipeline.FlagTarget.
func (t flagTarget) ReplaceStore(writeTo []string, readFrom ...string) (ok bool) {
	var refs []Reference
	var old []*Component
	t.eachReader(func(_ *Component, r Reference) {
		refs = append(refs, r)
		if !slices.Contains(old, r.Target) {
			old = append(old, r.Target)
		}
	})
	if !t.suit(readFrom, t.exporters(refs), refs[0].expected) || !t.suit(writeTo, t.exporters(nil), refs[0].expected) {
		return false
	}
	ids := func(types []string) []string {
		types = slices.Clone(types)
		for i, typ := range types {
			for _, c := range old {
				if c.Factory.Type() == typ {
					types[i] = c.Key.ID.String()
				}
			}
		}
		return types
	}
	for _, id := range ids(readFrom) {
		t.moveReaders(refs, id)
	}
	t.moveWriters(old, ids(writeTo))
	t.exchange(old, ids(slices.Concat(writeTo, readFrom)))
	return true
}

// suit reports whether all types are known. It reports the first unknown one as a problem.
func (t flagTarget) suit(types, known []string, expected string) bool {
	for _, typ := range types {
		if !slices.Contains(known, typ) {
			t.Problem("%q is not %s%s", typ, expected, yamltree.Suggest(typ, known, "known"))
			return false
		}
	}
	return true
}

// exporters returns the types of exporters to which all refs can refer.
func (t flagTarget) exporters(refs []Reference) []string {
	var types []string
	for typ, f := range t.base.factories[pipeline.KindExporter] {
		unfit := slices.ContainsFunc(refs, func(r Reference) bool { return !f.ComponentType().Implements(r.ref.Interface()) })
		if typ == f.Type() && !unfit {
			types = append(types, typ)
		}
	}
	return types
}

// moveReaders changes all references to the store id.
func (t flagTarget) moveReaders(refs []Reference, id string) {
	for _, r := range refs {
		if r.Target.Key.ID.String() != id {
			t.Set(id, r.path...)
		}
	}
}

// moveWriters replaces the old stores by new ones in pipelines.
func (t flagTarget) moveWriters(old []*Component, ids []string) {
	isOld := func(id string) bool {
		return slices.ContainsFunc(old, func(c *Component) bool { return c.Key.ID.String() == id })
	}
	for _, p := range t.base.tree.Keys("service", "pipelines") {
		path := []string{"service", "pipelines", p, "exporters"}
		list := t.list(path...)
		rest := slices.DeleteFunc(slices.Clone(list), func(id string) bool { return isOld(id) || slices.Contains(ids, id) })
		if moved := append(rest, ids...); slices.ContainsFunc(list, isOld) && !sameSet(list, moved) {
			t.Set(moved, path...)
		}
	}
}

// exchange removes the old stores from the exporters, and adds new ones.
func (t flagTarget) exchange(old []*Component, ids []string) {
	for _, c := range old {
		if id := c.Key.ID.String(); !slices.Contains(ids, id) {
			t.Set(nil, "exporters", id)
		}
	}
	for i, id := range ids {
		if !t.Has("exporters", id) && !slices.Contains(ids[:i], id) {
			t.Set(struct{}{}, "exporters", id)
		}
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
