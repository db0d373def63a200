package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/internal/conf"
)

// loader checks a merged tree and makes a Config of it. It goes on after a mistake, so that all are reported at once.
type loader struct {
	tree      *conf.Tree
	factories map[Kind]map[string]Factory
	config    *Config
	problems  conf.Problems
	warnings  conf.Problems
	broken    map[componentKey]bool // configured, but with mistakes of their own
}

var kinds = []Kind{KindReceiver, KindProcessor, KindExporter, KindExtension}

func (l *loader) problem(pos conf.Pos, path []string, format string, args ...any) {
	l.problems = append(l.problems, conf.Problem{Pos: pos, Path: conf.Display(path...), Msg: fmt.Sprintf(format, args...)})
}

func (l *loader) warn(pos conf.Pos, path []string, format string, args ...any) {
	l.warnings = append(l.warnings, conf.Problem{Pos: pos, Path: conf.Display(path...), Msg: fmt.Sprintf(format, args...)})
}

func (l *loader) load() {
	l.broken = map[componentKey]bool{}
	sections := []string{"receivers", "processors", "exporters", "extensions", "service"}
	for _, k := range l.tree.Keys() {
		if slices.Contains(sections, k) {
			continue
		}
		if hint, ok := foreignSections[k]; ok {
			pos := l.tree.KeyPos(k)
			l.problem(pos, nil, "section %q is not supported: %s; delete %s", k, hint, pos.Lines())
			continue
		}
		l.problem(l.tree.KeyPos(k), nil, "unknown section %q%s", k, conf.Suggest(k, sections, "known"))
	}
	for _, kind := range kinds {
		l.section(kind)
	}
	l.service()
	l.references()
	l.cycles()
	l.listeners()
	l.unused()
}

// section reads all components of a kind.
func (l *loader) section(kind Kind) {
	section := kind.section()
	if v := l.tree.Get(section); v != nil && l.tree.Map(section) == nil {
		if s, ok := v.(conf.Scalar); !ok || !s.Empty {
			l.problem(l.tree.ValuePos(section), []string{section}, "must be a map of component ids to their settings")
		}
	}
	for _, name := range l.tree.Keys(section) {
		pos := l.tree.KeyPos(section, name)
		id, err := ParseID(name)
		if err != nil {
			l.problem(pos, []string{section}, "%v", err)
			continue
		}
		key := componentKey{kind, id}
		f, ok := l.factories[kind][id.Type]
		if !ok {
			l.broken[key] = true
			l.unknownType(kind, id, pos)
			continue
		}
		l.component(key, f, pos)
	}
}

func (l *loader) unknownType(kind Kind, id ID, pos conf.Pos) {
	path := []string{kind.section()}
	if hint, ok := foreignComponents[kind][id.Type]; ok {
		l.problem(pos, path, "%s %q does not exist here: %s; delete %s", kind, id.Type, hint, pos.Lines())
		return
	}
	for _, other := range kinds {
		if _, ok := l.factories[other][id.Type]; ok {
			l.problem(pos, path, "%q is no %s; it is an %s and belongs under %s", id.Type, kind, other, other.section())
			return
		}
	}
	known := slices.Collect(maps.Keys(l.factories[kind]))
	l.problem(pos, path, "unknown %s type %q%s", kind, id.Type, conf.Suggest(id.Type, known, "known"))
}

// component decodes and checks one component's settings.
func (l *loader) component(key componentKey, f Factory, pos conf.Pos) {
	path := []string{key.kind.section(), key.id.String()}
	c := &componentConfig{key: key, factory: f, value: f.defaults(), pos: pos}
	before := len(l.problems)
	l.problems = append(l.problems, l.tree.Decode(c.value, path...)...)
	if len(l.problems) == before {
		l.validate(reflect.ValueOf(c.value).Elem(), path)
	}
	walkFields(reflect.ValueOf(c.value).Elem(), path, "", func(at []string, v reflect.Value, tag reflect.StructTag) {
		r, ok := v.Interface().(reference)
		if !ok || !r.IsSet() {
			return
		}
		word := tag.Get("ref")
		if word == "" {
			word = r.wants().String()
		}
		c.refs = append(c.refs, refUse{ref: r, path: at, word: word})
	})
	l.config.components[key] = c
}

// validate calls Validate on a config and everything in it.
func (l *loader) validate(v reflect.Value, path []string) {
	walkFields(v, path, "", func(at []string, v reflect.Value, _ reflect.StructTag) {
		if _, ok := v.Addr().Interface().(optional); ok {
			return // its block is visited on its own
		}
		if val, ok := v.Addr().Interface().(Validator); ok {
			l.invalid(at, val.Validate())
		}
	})
}

// invalid reports the errors of a Validate, each at its key.
func (l *loader) invalid(path []string, err error) {
	if err == nil {
		return
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			l.invalid(path, e)
		}
		return
	}
	at := path
	var key *KeyError
	if errors.As(err, &key) && key.Key != "" {
		at = append(path[:len(path):len(path)], strings.Split(key.Key, conf.Delim)...)
	}
	pos := l.tree.ValuePos(at...)
	if !l.tree.Has(at...) {
		pos = l.tree.KeyPos(at...)
	}
	l.problem(pos, at, "%v", err)
}

// service reads the service section and resolves the members of the pipelines.
func (l *loader) service() {
	path := []string{"service"}
	before := len(l.problems)
	l.problems = append(l.problems, l.tree.Decode(&l.config.service, path...)...)
	if len(l.problems) == before {
		l.validate(reflect.ValueOf(&l.config.service).Elem(), path)
	}
	l.members(KindExtension, l.config.service.Extensions, "service", "extensions")
	if l.tree.Map("service", "pipelines") == nil && len(l.config.service.Extensions) == 0 && len(l.problems) == 0 {
		pos := l.tree.KeyPos("service")
		l.problem(pos, nil, "nothing to run: service.pipelines needs at least one pipeline, for example traces: {receivers: [otlp], exporters: [memory]}")
	}
	for _, name := range l.tree.Keys("service", "pipelines") {
		l.pipeline(name)
	}
}

func (l *loader) pipeline(name string) {
	at := []string{"service", "pipelines", name}
	pos := l.tree.KeyPos(at...)
	id, err := ParseID(name)
	switch {
	case err != nil:
		l.problem(pos, at[:2], "%v", err)
		return
	case id.Type == "metrics" || id.Type == "logs" || id.Type == "profiles":
		l.problem(pos, at[:2], "a %s pipeline is not supported: only traces are; delete %s", id.Type, pos.Lines())
		return
	case id.Type != "traces":
		l.problem(pos, at[:2], "pipeline %q is of unknown type; write traces or traces/%s", name, id.Type)
		return
	}
	m := l.config.service.Pipelines[name]
	p := pipelineConfig{id: id}
	p.receivers = l.members(KindReceiver, m.Receivers, append(at, "receivers")...)
	p.processors = l.members(KindProcessor, m.Processors, append(at, "processors")...)
	p.exporters = l.members(KindExporter, m.Exporters, append(at, "exporters")...)
	for _, need := range []struct {
		kind  Kind
		given int
	}{{KindReceiver, len(m.Receivers)}, {KindExporter, len(m.Exporters)}} {
		if need.given == 0 {
			l.problem(pos, at, "needs at least one %s", need.kind)
		}
	}
	l.config.pipelines = append(l.config.pipelines, p)
}

// members resolves the ids of a list.
func (l *loader) members(kind Kind, ids []ID, path ...string) []*componentConfig {
	var out []*componentConfig
	seen := map[ID]bool{}
	for i, id := range ids {
		if id.IsZero() {
			continue // reported when it was read
		}
		pos := l.tree.ValuePos(append(path[:len(path):len(path)], fmt.Sprint(i))...)
		key := componentKey{kind, id}
		c, ok := l.config.components[key]
		switch {
		case seen[id]:
			l.problem(pos, path, "%s %q is listed twice", kind, id)
		case ok:
			out = append(out, c)
		case l.broken[key]: // reported where it is configured
		default:
			l.problem(pos, path, "%s %q is not configured%s", kind, id, conf.Suggest(id.String(), l.configured(kind), "configured are"))
		}
		seen[id] = true
	}
	return out
}

func (l *loader) configured(kind Kind) []string {
	var ids []string
	for k := range l.config.components {
		if k.kind == kind {
			ids = append(ids, k.id.String())
		}
	}
	slices.Sort(ids)
	return ids
}

// references finds the component that each Ref names.
func (l *loader) references() {
	for _, c := range l.sorted() {
		for i := range c.refs {
			l.reference(&c.refs[i])
		}
	}
}

func (l *loader) reference(r *refUse) {
	want, id := r.ref.wants(), r.ref.ID()
	var named []*componentConfig
	var fit []string
	for _, c := range l.sorted() {
		if c.key.kind != KindExporter && c.key.kind != KindExtension {
			continue
		}
		ok := c.factory.component.Implements(want)
		if ok {
			fit = append(fit, c.key.id.String())
		}
		if c.key.id == id {
			named = append(named, c)
			if ok && r.target == nil {
				r.target = c
			}
		}
	}
	if r.target != nil || l.broken[componentKey{KindExporter, id}] || l.broken[componentKey{KindExtension, id}] {
		return
	}
	these := "nothing that is configured does"
	if len(fit) > 0 {
		these = "these do: " + strings.Join(fit, ", ")
	}
	pos := l.tree.ValuePos(r.path...)
	if !l.tree.Has(r.path...) {
		pos = l.tree.KeyPos(r.path...)
	}
	if len(named) == 0 {
		l.problem(pos, r.path, "no exporter or extension %q is configured; this key needs %s, %s", id, r.word, these)
		return
	}
	l.problem(pos, r.path, "%s is not %s; %s", named[0].key, r.word, these)
}

// sorted returns all components in a fixed order: by kind, then by id.
func (l *loader) sorted() []*componentConfig { return l.config.sorted() }

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
	var visit func(c *componentConfig, way []string)
	visit = func(c *componentConfig, way []string) {
		state[c] = visiting
		way = append(way, c.key.id.String())
		for _, r := range c.refs {
			switch {
			case r.target == nil || state[r.target] == done:
			case state[r.target] == visiting:
				l.problem(l.tree.ValuePos(r.path...), r.path, "references go in a circle: %s -> %s", strings.Join(way, " -> "), r.target.key.id)
			default:
				visit(r.target, way)
			}
		}
		state[c] = done
	}
	for _, c := range l.sorted() {
		if state[c] == 0 {
			visit(c, nil)
		}
	}
}

// listeners finds two listeners on one address.
func (l *loader) listeners() {
	type use struct {
		host string
		path []string
	}
	ports := map[string][]use{}
	for _, c := range l.sorted() {
		if !l.inForce(c) {
			continue
		}
		path := []string{c.key.kind.section(), c.key.id.String()}
		walkFields(reflect.ValueOf(c.value).Elem(), path, "", func(at []string, v reflect.Value, _ reflect.StructTag) {
			e, ok := v.Interface().(Endpoint)
			host, port, err := net.SplitHostPort(string(e))
			if !ok || err != nil || port == "0" {
				return
			}
			for _, other := range ports[port] {
				if sameHost(host, other.host) {
					pos := l.tree.ValuePos(at...)
					l.problem(pos, at, "%s is taken by %s; two listeners cannot share a port", e, conf.Display(other.path...))
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

// inForce reports whether a component is built: it is in a pipeline, in service.extensions, or referenced.
func (l *loader) inForce(c *componentConfig) bool { return l.config.inForce()[c] }

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
	for _, c := range l.sorted() {
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
