package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/internal/conf"
)

// loader checks a merged tree and makes a Config of it. It goes on after a mistake, so that all are reported at once.
type loader struct {
	tree       *conf.Tree
	factories  map[Kind]map[string]Factory
	config     *Config
	problems   conf.Problems
	warnings   conf.Problems
	broken     map[componentKey]bool // configured, but of no type that exists
	components []*componentConfig    // the others, in a fixed order
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
	l.unknownSections()
	for _, kind := range kinds {
		l.section(kind)
	}
	l.components = l.config.sorted()
	l.service()
	l.references()
	l.cycles()
	l.listeners()
	l.unused()
}

func (l *loader) unknownSections() {
	sections := []string{"receivers", "processors", "exporters", "extensions", "service"}
	for _, k := range l.tree.Keys() {
		pos := l.tree.KeyPos(k)
		hint, foreign := foreignSections[k]
		switch {
		case slices.Contains(sections, k):
		case foreign:
			l.problem(pos, nil, "section %q is not supported: %s; delete %s", k, hint, pos.Lines())
		case slices.Contains(conf.Keys(reflect.TypeFor[serviceConfig]()), k):
			l.problem(pos, nil, "%q belongs under service", k)
		default:
			l.problem(pos, nil, "unknown section %q%s", k, conf.Suggest(k, sections, "known"))
		}
	}
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
			l.problem(pos, path, "%q is not a type of %s but of %s; it belongs under %s", id.Type, kind, other, other.section())
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
	l.decode(c.value, path)
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

// decode reads the block at path into a config, a pointer, and checks it. What could not be read is not checked: it keeps its default,
// and one mistake is reported once.
func (l *loader) decode(config any, path []string) {
	unread := l.tree.Decode(config, path...)
	before := len(l.problems)
	l.validate(reflect.ValueOf(config).Elem(), path)
	found := slices.DeleteFunc(l.problems[before:], func(p conf.Problem) bool {
		return slices.ContainsFunc(unread, func(u conf.Problem) bool {
			return u.Path == p.Path || strings.HasPrefix(u.Path, p.Path+".")
		})
	})
	l.problems = append(l.problems[:before+len(found)], unread...)
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
	l.problem(l.valuePos(at), at, "%v", err)
}

// service reads the service section and resolves the members of the pipelines.
func (l *loader) service() {
	path := []string{"service"}
	l.decode(&l.config.service, path)
	l.members(KindExtension, l.config.service.Extensions, "service", "extensions")
	if len(l.tree.Map("service", "pipelines")) == 0 && len(l.config.service.Extensions) == 0 && len(l.problems) == 0 {
		pos := l.tree.KeyPos("service")
		l.problem(pos, nil, "nothing to run: service.pipelines needs at least one pipeline, for example "+
			"traces: {receivers: [otlp], exporters: [memory]}")
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
		if need.given == 0 && !l.notAList(append(at, need.kind.section())) {
			l.problem(pos, at, "needs at least one %s", need.kind)
		}
	}
	l.config.pipelines = append(l.config.pipelines, p)
}

// notAList reports whether a value stands where a list belongs, which was reported when it was read.
func (l *loader) notAList(path []string) bool {
	switch v := l.tree.Get(path...).(type) {
	case conf.Scalar:
		return !v.Empty
	case map[string]any:
		return true
	}
	return false
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
	for _, c := range l.components {
		if c.key.kind == kind {
			ids = append(ids, c.key.id.String())
		}
	}
	return ids
}
