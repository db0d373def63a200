package pipeline

import (
	"cmp"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/internal/conf"
)

// What the loader checks once all components are read: how they go together.

// references finds the component that each Ref names.
func (l *loader) references() {
	for _, c := range l.components {
		for i := range c.refs {
			l.reference(&c.refs[i])
		}
	}
}

func (l *loader) reference(r *refUse) {
	want, id := r.ref.wants(), r.ref.ID()
	var named *componentConfig
	for _, kind := range []Kind{KindExtension, KindExporter} {
		key := componentKey{kind, id}
		if l.broken[key] {
			return
		}
		if c, ok := l.config.components[key]; ok {
			named = c
			if c.factory.component.Implements(want) {
				r.target = c
			}
		}
	}
	switch {
	case r.target != nil:
		if err := r.target.lacks(want); err != nil {
			l.problem(l.valuePos(r.path), r.path, "%s is not %s: %v%s", r.target.key, r.word, err, l.able(id, want))
		}
	case named == nil:
		l.problem(l.valuePos(r.path), r.path, "no exporter or extension %q is configured; this key needs %s%s", id, r.word, l.able(id, want))
	default:
		l.problem(l.valuePos(r.path), r.path, "%s is not %s%s", named.key, r.word, l.able(id, want))
	}
}

// able is the end of a message about a reference to id: what could stand there instead.
func (l *loader) able(id ID, want reflect.Type) string {
	var fit []string
	for _, c := range l.components {
		if (c.key.kind == KindExporter || c.key.kind == KindExtension) && c.factory.component.Implements(want) && c.lacks(want) == nil {
			fit = append(fit, c.key.id.String())
		}
	}
	if len(fit) == 0 {
		return "; none is configured"
	}
	return conf.Suggest(id.String(), fit, "these are")
}

// lacks returns what a component is missing to be what a Ref to it wants, though it has the methods.
func (c *componentConfig) lacks(want reflect.Type) error {
	if l, ok := c.value.(Limited); ok {
		return l.Lacks(want)
	}
	return nil
}

// valuePos returns where a value stands, or the nearest key above one that is a default.
func (l *loader) valuePos(path []string) conf.Pos {
	if l.tree.Has(path...) {
		return l.tree.ValuePos(path...)
	}
	return l.tree.KeyPos(path...)
}

// sorted returns all components in a fixed order: by kind, then by id.
func (c *Config) sorted() []*componentConfig {
	return slices.SortedFunc(maps.Values(c.components), func(a, b *componentConfig) int {
		if a.key.kind != b.key.kind {
			return int(a.key.kind) - int(b.key.kind)
		}
		return strings.Compare(a.key.id.String(), b.key.id.String())
	})
}

// cycles finds references that lead back to where they began.
func (l *loader) cycles() {
	const (
		visiting = 1
		done     = 2
	)
	state := map[*componentConfig]int{}
	var visit func(c *componentConfig, way []*componentConfig)
	visit = func(c *componentConfig, way []*componentConfig) {
		state[c] = visiting
		way = append(way, c)
		for _, r := range c.refs {
			switch {
			case r.target == nil || state[r.target] == done:
			case state[r.target] == visiting:
				l.circle(r, way[slices.Index(way, r.target):])
			default:
				visit(r.target, way)
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

func (l *loader) circle(last refUse, way []*componentConfig) {
	var ids []string
	for _, c := range way {
		ids = append(ids, c.key.id.String())
	}
	l.problem(l.valuePos(last.path), last.path, "references go in a circle: %s -> %s", strings.Join(ids, " -> "), last.target.key.id)
}

// listeners finds two listeners on one address. A port of TCP and one of UDP with the same number are two ports.
func (l *loader) listeners() {
	type use struct {
		host string
		path []string
	}
	ports := map[string][]use{}
	used := l.config.inForce()
	for _, c := range l.components {
		if !used[c] {
			continue
		}
		path := []string{c.key.kind.section(), c.key.id.String()}
		walkFields(reflect.ValueOf(c.value).Elem(), path, "", func(at []string, v reflect.Value, tag reflect.StructTag) {
			e, ok := v.Interface().(Endpoint)
			host, port, err := net.SplitHostPort(string(e))
			if !ok || err != nil || port == "0" {
				return
			}
			port = cmp.Or(tag.Get("network"), "tcp") + port
			for _, other := range ports[port] {
				if sameHost(host, other.host) {
					l.problem(l.valuePos(at), at, "%s is taken by %s; two listeners cannot share a port", e, conf.Display(other.path...))
					return
				}
			}
			ports[port] = append(ports[port], use{host, at})
		})
	}
}

// sameHost reports whether listeners on two hosts would be in each other's way.
func sameHost(a, b string) bool {
	wild := func(h string) bool { return h == "" || h == "0.0.0.0" || h == "::" }
	local := func(h string) bool { return h == "localhost" || h == "127.0.0.1" }
	return a == b || wild(a) || wild(b) || local(a) && local(b)
}

// inForce returns the components that are built: those in a pipeline or in service.extensions, and what they refer to.
func (c *Config) inForce() map[*componentConfig]bool {
	used := map[*componentConfig]bool{}
	var use func(m *componentConfig)
	use = func(m *componentConfig) {
		if m == nil || used[m] {
			return
		}
		used[m] = true
		for _, r := range m.refs {
			use(r.target)
		}
	}
	for _, p := range c.pipelines {
		for _, m := range slices.Concat(p.receivers, p.processors, p.exporters) {
			use(m)
		}
	}
	for _, id := range c.service.Extensions {
		use(c.components[componentKey{KindExtension, id}])
	}
	return used
}

// unused warns of components that nothing uses.
func (l *loader) unused() {
	used := l.config.inForce()
	for _, c := range l.components {
		if used[c] {
			continue
		}
		where := "no pipeline lists it"
		if c.key.kind == KindExtension {
			where = "service.extensions does not list it"
		}
		l.warn(c.pos, []string{c.key.kind.section(), c.key.id.String()}, "is configured and not used: %s", where)
	}
}
