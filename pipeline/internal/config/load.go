package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/internal/foreign"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// loader checks a merged tree and makes a Config of it. It continues after a mistake, so that all
// mistakes are reported together.
type loader struct {
	tree       *yamltree.Tree
	factories  map[pipeline.Kind]map[string]pipeline.Factory // by type and alias
	config     *Config
	problems   yamltree.Problems
	warnings   yamltree.Problems
	broken     map[Key]bool // components of unknown type
	components []*Component // all others, sorted
	preset     *yamltree.Tree
	options    *Options
}

var kinds = []pipeline.Kind{pipeline.KindReceiver, pipeline.KindProcessor, pipeline.KindExporter, pipeline.KindConnector,
	pipeline.KindExtension}

// newLoader merges sources and checks the result.
func newLoader(o *Options, sources []yamltree.Source) *loader {
	tree, problems := yamltree.Load(sources, &yamltree.Expander{LookupEnv: o.LookupEnv, ReadFile: o.ReadFile})
	l := &loader{options: o, tree: tree, problems: problems,
		factories: map[pipeline.Kind]map[string]pipeline.Factory{}, broken: map[Key]bool{}}
	if o.hasPreset() {
		l.preset, _ = yamltree.Load(sources[:1], &yamltree.Expander{LookupEnv: o.LookupEnv, ReadFile: o.ReadFile})
	}
	l.config = &Config{components: map[Key]*Component{}, Service: defaultService(), tree: tree}
	for _, f := range o.Factories {
		if l.factories[f.Kind()] == nil {
			l.factories[f.Kind()] = map[string]pipeline.Factory{}
		}
		for _, name := range typeNames(f) {
			l.factories[f.Kind()][name] = f
		}
	}
	l.load()
	return l
}

func (l *loader) problem(pos yamltree.Pos, path []string, format string, args ...any) {
	l.problems = append(l.problems, yamltree.Problem{Pos: pos, Path: yamltree.Display(path...), Msg: fmt.Sprintf(format, args...)})
}

func (l *loader) warn(pos yamltree.Pos, path []string, format string, args ...any) {
	l.warnings = append(l.warnings, yamltree.Problem{Pos: pos, Path: yamltree.Display(path...), Msg: fmt.Sprintf(format, args...)})
}

func (l *loader) load() {
	l.rewriteForeign()
	l.checkSections()
	for _, kind := range kinds {
		l.loadSection(kind)
	}
	l.components = l.config.Sorted()
	l.loadService()
	l.resolveReferences()
	l.checkCycles()
	l.checkConnectors()
	l.checkListeners()
	l.warnOpenListeners()
	l.checkTenants()
	l.warnHolders()
	l.warnIneffective()
	l.warnUnused()
}

func (l *loader) checkSections() {
	var sections []string
	for _, kind := range kinds {
		sections = append(sections, kind.Section())
	}
	sections = append(sections, "service")
	for _, k := range l.tree.Keys() {
		pos := l.tree.KeyPos(k)
		switch {
		case slices.Contains(sections, k):
		case slices.Contains(yamltree.Keys(reflect.TypeFor[Service]()), k):
			l.problem(pos, nil, "%q belongs under service", k)
		default:
			l.problem(pos, nil, "unknown section %q%s", k, yamltree.Suggest(k, sections, "known"))
		}
	}
}

// loadSection loads all components of a kind.
func (l *loader) loadSection(kind pipeline.Kind) {
	section := kind.Section()
	if v := l.tree.Get(section); v != nil && l.tree.Map(section) == nil {
		if s, ok := v.(yamltree.Scalar); !ok || !s.Empty {
			l.problem(l.tree.ValuePos(section), []string{section}, "must be a map of component ids to their settings")
		}
	}
	for _, name := range l.tree.Keys(section) {
		pos := l.tree.KeyPos(section, name)
		id, err := pipeline.ParseID(name)
		if err != nil {
			l.problem(pos, []string{section}, "%v", err)
			continue
		}
		key := Key{kind, id}
		f, ok := l.factories[kind][id.Type]
		if !ok {
			l.broken[key] = true
			l.reportUnknownType(kind, id, pos)
			continue
		}
		if id.Type != f.Type() {
			l.warn(pos, []string{section, name}, "%s %q is called %s here", kind, id.Type, f.Type())
		}
		l.loadComponent(key, f, pos)
	}
}

func (l *loader) reportUnknownType(kind pipeline.Kind, id pipeline.ID, pos yamltree.Pos) {
	path := []string{kind.Section()}
	instead := l.deletion(kind.Section(), id.String()) + ", or add it in a custom build, see docs/collector-components.md"
	switch {
	case foreign.Distributes(kind.Section(), id.Type):
		instead = "do not just delete it, because spans would reach other exporters; " + foreign.InFront
	case kind == pipeline.KindConnector:
		instead = l.deletion(kind.Section(), id.String()) + ", or " + foreign.InFront
	}
	hint := foreign.Hint(kind.Section(), id.Type)
	switch {
	case hint != "" && foreign.Identifies(id.Type): // nothing to delete: the hint about the file says what to do
		l.problem(pos, path, "%s %q is not built in: %s", kind, id.Type, hint)
		return
	case hint != "":
		l.problem(pos, path, "%s %q is not built in: %s; %s", kind, id.Type, hint, instead)
		return
	}
	for _, other := range kinds {
		if _, ok := l.factories[other][id.Type]; ok {
			l.problem(pos, path, "%q is not a type of %s but of %s and belongs under %s", id.Type, kind, other, other.Section())
			return
		}
	}
	var known []string
	for name, f := range l.factories[kind] {
		if name == f.Type() {
			known = append(known, name)
		}
	}
	suggestion := yamltree.Suggest(id.Type, known, "known")
	if pos.Line > 0 && !strings.Contains(suggestion, "did you mean") {
		if !foreign.Distributes(kind.Section(), id.Type) {
			instead = "if another program has it, " + instead
		}
		suggestion += "; " + instead
	}
	l.problem(pos, path, "unknown %s type %q%s", kind, id.Type, suggestion)
}

// loadComponent decodes and checks the configuration of one component.
func (l *loader) loadComponent(key Key, f pipeline.Factory, pos yamltree.Pos) {
	path := []string{key.Kind.Section(), key.ID.String()}
	c := &Component{Key: key, Factory: f, Value: f.Defaults(), pos: pos}
	l.decode(c.Value, path)
	walkFields(reflect.ValueOf(c.Value).Elem(), path, "", func(at []string, v reflect.Value, tag reflect.StructTag) {
		r, ok := v.Interface().(ref)
		if !ok || !r.IsSet() {
			return
		}
		expected := tag.Get("ref")
		if expected == "" {
			expected = r.Interface().String()
		}
		c.References = append(c.References, Reference{ref: r, path: at, expected: expected})
	})
	l.config.components[key] = c
}

// decode decodes the block at path into config, a pointer, and validates it. Values that cannot be
// decoded keep their defaults; problems that Validate reports about them are left out, so that each
// mistake is reported once.
func (l *loader) decode(config any, path []string) {
	if tree, ok := config.(yamltree.TreeConfig); ok {
		l.decodeTree(tree, path)
		return
	}
	undecoded := l.tree.Decode(config, path...)
	before := len(l.problems)
	l.validate(reflect.ValueOf(config).Elem(), path)
	found := slices.DeleteFunc(l.problems[before:], func(p yamltree.Problem) bool {
		return slices.ContainsFunc(undecoded, func(u yamltree.Problem) bool {
			return u.Path == p.Path || strings.HasPrefix(u.Path, p.Path+".")
		})
	})
	l.problems = append(l.problems[:before+len(found)], undecoded...)
}

// validate calls Validate of v and of every field in it.
func (l *loader) validate(v reflect.Value, path []string) {
	walkFields(v, path, "", func(at []string, v reflect.Value, _ reflect.StructTag) {
		if _, ok := v.Addr().Interface().(optional); ok {
			return // walkFields visits the block itself
		}
		if val, ok := v.Addr().Interface().(pipeline.Validator); ok {
			l.reportInvalid(at, val.Validate())
		}
	})
}

// reportInvalid reports the errors of a Validate, each at the position of its key.
func (l *loader) reportInvalid(path []string, err error) {
	eachKeyError(path, err, func(at []string, err error) {
		var unknown *yamltree.UnknownKeyError
		if errors.As(err, &unknown) {
			l.reportUnknownKey(path, unknown)
			return
		}
		l.problem(l.valuePos(at), at, "%v", err)
	})
}

// warnIneffective warns about values that have no effect.
func (l *loader) warnIneffective() {
	used := l.config.Used()
	for _, c := range l.components {
		if w, ok := c.Value.(pipeline.Warner); ok && used[c] {
			eachKeyError([]string{c.Key.Kind.Section(), c.Key.ID.String()}, w.Warnings(l.config.Service.Limits.MaxWait.Std()),
				func(at []string, err error) { l.warn(l.valuePos(at), at, "%v", err) })
		}
	}
}

// eachKeyError calls report with each of the errors that err joins, and the path of its key below
// path.
func eachKeyError(path []string, err error, report func(at []string, err error)) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			eachKeyError(path, e, report)
		}
		return
	}
	if err == nil {
		return
	}
	at := path
	var key *pipeline.KeyError
	if errors.As(err, &key) && key.Key != "" {
		at = append(path[:len(path):len(path)], strings.Split(key.Key, yamltree.Delim)...)
	}
	report(at, err)
}

// valuePos returns the position of a value, or of the nearest key above a value that is a default.
func (l *loader) valuePos(path []string) yamltree.Pos { return valuePos(l.tree, path) }

func valuePos(tree *yamltree.Tree, path []string) yamltree.Pos {
	if tree.Has(path...) {
		return tree.ValuePos(path...)
	}
	return tree.KeyPos(path...)
}

// decodeTree passes the block at path to a configuration that decodes itself.
func (l *loader) decodeTree(config yamltree.TreeConfig, path []string) {
	value, texts, problems := l.tree.Values(path...)
	if len(problems) > 0 {
		l.problems = append(l.problems, problems...)
		return
	}
	block, ok := value.(map[string]any)
	if !ok && value != nil {
		l.problem(l.tree.ValuePos(path...), path, "must be a block of keys")
		return
	}
	if block == nil {
		block = map[string]any{}
	}
	l.reportInvalid(path, unmarshalSafely(config, block, texts))
}

// unmarshalSafely calls UnmarshalTree and recovers from panics, because it may be a component
// author's code.
func unmarshalSafely(config yamltree.TreeConfig, block map[string]any, texts map[string]string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: decoding the configuration panicked: %v", p)
		}
	}()
	return config.UnmarshalTree(block, texts)
}

// reportUnknownKey reports a key that a configuration at path does not have.
func (l *loader) reportUnknownKey(path []string, unknown *yamltree.UnknownKeyError) {
	parts := strings.Split(unknown.Key, yamltree.Delim)
	at := append(path[:len(path):len(path)], parts...)
	name := parts[len(parts)-1]
	l.problem(l.tree.KeyPos(at...), at[:len(at)-1], "%s%s", unknown.Msg, yamltree.Suggest(name, unknown.Known, "known"))
}
