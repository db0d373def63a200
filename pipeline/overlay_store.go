package pipeline

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/internal/conf"
)

// replaceStore puts other exporters into the place of those that something in the configuration reads from.
func (o *overlayer) replaceStore(g givenFlag) {
	var refs []refUse
	var old []ID
	for _, c := range o.base.components {
		for _, r := range c.refs {
			if r.target != nil && r.target.key.kind == KindExporter {
				refs = append(refs, r)
				if !slices.Contains(old, r.target.key.id) {
					old = append(old, r.target.key.id)
				}
			}
		}
	}
	if len(refs) == 0 {
		o.absent(g, "the configuration has no store: nothing in it names an exporter to read from")
		return
	}
	ids := strings.Split(g.text, ",")
	for i, typ := range ids {
		if known := o.stores(refs, i == 0); !slices.Contains(known, typ) {
			o.problem(g, "%q is not %s%s", typ, refs[0].word, conf.Suggest(typ, known, "known"))
			return
		}
		for _, id := range old { // one of this type keeps its name and settings
			if id.Type == typ {
				ids[i] = id.String()
			}
		}
	}
	o.moveReaders(g, refs, ids[0])
	o.moveWriters(g, old, ids)
}

// moveReaders makes what reads from a store read from another.
func (o *overlayer) moveReaders(g givenFlag, refs []refUse, id string) {
	for _, r := range refs {
		if r.target.key.id.String() != id {
			o.set(g, r.path, id)
		}
	}
}

// moveWriters puts the new stores where the old ones are listed and configured.
func (o *overlayer) moveWriters(g givenFlag, old []ID, ids []string) {
	isOld := func(id string) bool { return slices.ContainsFunc(old, func(o ID) bool { return o.String() == id }) }
	for _, p := range o.base.tree.Keys("service", "pipelines") {
		path := []string{"service", "pipelines", p, "exporters"}
		list := o.list(path...)
		rest := slices.DeleteFunc(slices.Clone(list), func(id string) bool { return isOld(id) || slices.Contains(ids, id) })
		if moved := append(rest, ids...); slices.ContainsFunc(list, isOld) && !sameSet(list, moved) {
			o.set(g, path, moved)
		}
	}
	for _, id := range old {
		if !slices.Contains(ids, id.String()) {
			o.set(g, []string{"exporters", id.String()}, nil)
		}
	}
	for _, id := range ids {
		if !o.base.tree.Has("exporters", id) {
			o.sources = append(o.sources, conf.Source{Name: g.source(), Path: []string{"exporters", id}})
		}
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// stores returns the types of exporter; when they must be readable, only those that fit all references.
func (o *overlayer) stores(refs []refUse, readable bool) []string {
	var types []string
	for typ, f := range o.base.factories[KindExporter] {
		unfit := slices.ContainsFunc(refs, func(r refUse) bool { return !f.component.Implements(r.ref.wants()) })
		if !readable || !unfit {
			types = append(types, typ)
		}
	}
	return types
}
