package config

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/internal/foreign"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

type (
	// Problem is one mistake in a configuration.
	Problem = yamltree.Problem
	// Problems is a list of mistakes.
	Problems = yamltree.Problems
)

// Config is a configuration without mistakes, from which components can be built.
type Config struct {
	Service   Service
	Pipelines []Pipeline

	components map[Key]*Component
	warnings   []string
	tree       *yamltree.Tree // values as written, and their positions
}

// Warnings returns settings that are valid but probably not intended, one sentence each.
func (c *Config) Warnings() []string { return c.warnings }

// Key identifies a configured component.
type Key struct {
	Kind pipeline.Kind
	ID   pipeline.ID
}

// String returns kind and id: `receiver otlp/internal`.
func (k Key) String() string { return k.Kind.String() + " " + k.ID.String() }

// Component is the configuration of one component.
type Component struct {
	Key        Key
	Factory    pipeline.Factory
	Value      any // pointer to the configuration of the component's own type
	References []Reference

	pos yamltree.Pos
}

// DirName returns the name of the component's folder. The folder of an exporter is in
// service.data_dir.
func (c *Component) DirName() string {
	name := c.Key.ID.Type
	if c.Key.ID.Name != "" {
		name += "-" + url.PathEscape(c.Key.ID.Name)
	}
	return name
}

// Holds reports whether the component is a [pipeline.Holder].
func (c *Component) Holds() bool {
	return c.Factory.ComponentType().Implements(reflect.TypeFor[pipeline.Holder]())
}

// path returns the keys that lead to the configuration of the component.
func (c *Component) path() []string { return []string{c.Key.Kind.Section(), c.Key.ID.String()} }

// Passes reports whether the component passes spans on to other components of its pipelines.
func (c *Component) Passes() bool {
	switch c.Key.Kind {
	case pipeline.KindReceiver, pipeline.KindProcessor, pipeline.KindConnector:
		return true
	}
	return false
}

// Reference is a [pipeline.Ref] field that is set.
type Reference struct {
	Target *Component

	ref      ref
	path     []string
	expected string // what the target must be, in the user's words: `a store`
}

// Bind makes the field refer to the component that was built for Target.
func (r *Reference) Bind(component any) { r.ref.Bind(component) }

// ref is implemented by pipeline.Ref of every type.
type ref interface {
	IsSet() bool
	ID() pipeline.ID
	Interface() reflect.Type
	Bind(component any)
}

// optional is implemented by pointers to pipeline.Optional of every type.
type optional interface {
	Block() (block any, enabled bool)
}

var (
	_ ref      = pipeline.Ref[any]{}
	_ optional = (*pipeline.Optional[any])(nil)
)

// Load reads, merges and checks a configuration. The error lists all mistakes, one per line, in the
// order of the files. Each line has the position, the key, what is wrong and what is expected.
func Load(o Options) (*Config, error) {
	o.setDefaults()
	if err := o.checkFactories(); err != nil {
		return nil, err
	}
	sources, err := o.sources()
	if err != nil {
		return nil, err
	}
	flags := &overlay{}
	if len(o.Flags) > 0 {
		flags = newOverlay(&o, sources)
	}
	used := o.recordVariables()
	l := newLoader(&o, slices.Concat(sources, flags.sources, o.overrides()))
	l.warnVariables(&o, used)
	l.problems = append(l.problems, flags.problems...)
	l.warnings = append(l.warnings, flags.warnings...)
	l.mask(l.problems)
	l.mask(l.warnings)
	if o.Strict {
		l.problems = append(l.problems, l.warnings...)
	}
	if len(l.problems) > 0 {
		l.problems.Sort()
		return nil, append(l.problems, foreignFiles(sources)...)
	}
	l.warnings.Sort()
	for _, w := range l.warnings {
		l.config.warnings = append(l.config.warnings, w.Error())
	}
	return l.config, nil
}

// foreignFiles returns a problem, without a line, for each source that is the configuration file of
// another program.
func foreignFiles(sources []yamltree.Source) (found yamltree.Problems) {
	for _, s := range sources {
		if hint := foreign.Recognize(s.Name, s.YAML); hint != "" {
			found = append(found, yamltree.Problem{Pos: yamltree.Pos{Source: s.Name}, Msg: hint})
		}
	}
	return found
}

// mask masks possible secrets in messages: parts of URLs, and the values of environment variables
// and files.
func (l *loader) mask(problems yamltree.Problems) {
	l.tree.Redact(problems)
	for i := range problems {
		problems[i].Msg = pipeline.MaskURLs(problems[i].Msg)
	}
}

// Mask replaces the values of environment variables and files in an error about the configuration.
func (c *Config) Mask(err error) error { return errors.New(c.tree.RedactText(err.Error())) }

// Sorted returns all components by kind, then by id.
func (c *Config) Sorted() []*Component {
	return slices.SortedFunc(maps.Values(c.components), func(a, b *Component) int {
		if a.Key.Kind != b.Key.Kind {
			return int(a.Key.Kind) - int(b.Key.Kind)
		}
		return strings.Compare(a.Key.ID.String(), b.Key.ID.String())
	})
}

// Used returns the components to build: those in a pipeline or in service.extensions, and those
// that they refer to.
func (c *Config) Used() map[*Component]bool {
	used := map[*Component]bool{}
	var use func(m *Component)
	use = func(m *Component) {
		if m == nil || used[m] {
			return
		}
		used[m] = true
		for _, r := range m.References {
			use(r.Target)
		}
	}
	for _, p := range c.Pipelines {
		for _, m := range p.Members() {
			use(m)
		}
	}
	for _, id := range c.Service.Extensions {
		use(c.components[Key{pipeline.KindExtension, id}])
	}
	return used
}

var observerType = reflect.TypeFor[pipeline.Observer]()

// IsObserver reports whether the component is a [pipeline.Observer].
func (c *Component) IsObserver() bool { return c.Factory.ComponentType().Implements(observerType) }

// AdminEndpoint returns the address at which a process with this configuration responds to health
// checks: the first listener of the first observer, as host:port, or https://host:port if the
// listener has a `tls` block.
func (c *Config) AdminEndpoint() (string, error) {
	used := c.Used()
	for _, m := range c.Sorted() {
		if !used[m] || !m.IsObserver() {
			continue
		}
		address, scheme := "", ""
		walkFields(reflect.ValueOf(m.Value).Elem(), nil, "", func(_ []string, v reflect.Value, tag reflect.StructTag) {
			switch field := v.Addr().Interface().(type) {
			case *pipeline.Endpoint:
				address = cmp.Or(address, string(*field))
			case optional:
				if _, on := field.Block(); on && tag.Get("yaml") == "tls" {
					scheme = "https://"
				}
			}
		})
		if address != "" {
			return scheme + address, nil
		}
	}
	return "", errors.New("configuration has no extension that serves health checks; give --endpoint host:port")
}
