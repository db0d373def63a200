package config

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// replaceStore replaces the exporters that are referenced by others.
func (o *overlay) replaceStore(g GivenFlag) {
	var refs []Reference
	var old []pipeline.ID
	for _, c := range o.base.components {
		for _, r := range c.References {
			if r.Target != nil && r.Target.Key.Kind == pipeline.KindExporter {
				refs = append(refs, r)
				if !slices.Contains(old, r.Target.Key.ID) {
					old = append(old, r.Target.Key.ID)
				}
			}
		}
	}
	if len(refs) == 0 && o.writesToBroker(g) {
		return
	}
	if len(refs) == 0 {
		o.absent(g, "the configuration has no store: no component refers to an exporter")
		return
	}
	ids, ok := o.knownStores(g, refs[0].expected, o.isWritten(old))
	if !ok {
		return
	}
	readableFirst(ids)
	if _, builtIn := o.base.factories[pipeline.KindExporter][broker]; builtIn && ids[0] == broker {
		o.replaceByBroker(g, refs, old)
		return
	}
	if ids[0] == discarding { // reads find nothing
		o.moveReaders(g, refs, emptyStore)
		o.moveWriters(g, old, ids)
		o.sources = append(o.sources, yamltree.Source{Name: g.source(), Path: []string{"exporters", emptyStore}})
		return
	}
	for i, typ := range ids {
		if known := o.stores(refs, i == 0); !slices.Contains(known, typ) {
			o.problem(g, "%q is not %s%s", typ, refs[0].expected, yamltree.Suggest(typ, known, "known"))
			return
		}
		for _, id := range old { // an exporter of this type keeps its name and settings
			if f, ok := o.base.factories[pipeline.KindExporter][id.Type]; ok && f.Type() == typ {
				ids[i] = id.String()
			}
		}
	}
	o.moveReaders(g, refs, ids[0])
	o.moveWriters(g, old, ids)
	if slices.Contains(ids, broker) {
		o.setBrokerDefaults(g)
	}
}

// moveReaders changes all references to the store id.
func (o *overlay) moveReaders(g GivenFlag, refs []Reference, id string) {
	for _, r := range refs {
		if r.Target.Key.ID.String() != id {
			o.set(g, r.path, id)
		}
	}
}

// moveWriters replaces the old stores by new ones in pipelines and in the exporters section.
func (o *overlay) moveWriters(g GivenFlag, old []pipeline.ID, ids []string) {
	isOld := func(id string) bool {
		return slices.ContainsFunc(old, func(o pipeline.ID) bool { return o.String() == id })
	}
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
			o.sources = append(o.sources, yamltree.Source{Name: g.source(), Path: []string{"exporters", id}})
		}
	}
}

// isWritten reports whether a pipeline ends in one of the stores.
func (o *overlay) isWritten(stores []pipeline.ID) bool {
	for _, p := range o.base.config.Pipelines {
		for _, e := range p.Exporters {
			if slices.Contains(stores, e.Key.ID) {
				return true
			}
		}
	}
	return false
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// stores returns the types of exporters; if readable, only those that all references can refer to.
func (o *overlay) stores(refs []Reference, readable bool) []string {
	var types []string
	for typ, f := range o.base.factories[pipeline.KindExporter] {
		unfit := slices.ContainsFunc(refs, func(r Reference) bool { return !f.ComponentType().Implements(r.ref.Interface()) })
		if typ == f.Type() && (!readable || !unfit) {
			types = append(types, typ)
		}
	}
	return types
}
