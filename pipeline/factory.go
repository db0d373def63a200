package pipeline

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/commands"
)

// Factory builds components of one type. It holds the name of the type, its default configuration,
// its builder, and its command-line flags and commands. [Receiver], [Processor], [Exporter],
// [Connector] and [Extension] return factories.
type Factory struct {
	kind      Kind
	typ       string
	aliases   []string
	doc       string
	example   string
	flags     []Flag
	commands  []commands.Command
	logs      bool
	component reflect.Type
	defaults  func() any // returns a pointer to a new configuration
	build     func(set Settings, config any, next Consumer) (any, error)
}

// Receiver returns the factory of a receiver type. The receiver passes the spans that it receives
// to next. build must not open ports or files, and R must be a concrete type.
func Receiver[C any, R Starter](typ string, defaults func() C, build func(set Settings, config C, next Consumer) (R, error)) Factory {
	return newFactory(KindReceiver, typ, defaults, build)
}

// Processor returns the factory of a processor type. The processor passes the spans that it
// consumes to next. build must not open ports or files, and P must be a concrete type.
func Processor[C any, P Consumer](typ string, defaults func() C, build func(set Settings, config C, next Consumer) (P, error)) Factory {
	return newFactory(KindProcessor, typ, defaults, build)
}

// Exporter returns the factory of an exporter type: a store or a next hop. A store is an exporter
// that other components can also read, see [Ref]. build must not open ports or files, and E must
// be a concrete type.
func Exporter[C any, E Consumer](typ string, defaults func() C, build func(set Settings, config C) (E, error)) Factory {
	return newFactory(KindExporter, typ, defaults, func(s Settings, c C, _ Consumer) (E, error) { return build(s, c) })
}

// Connector returns the factory of a connector type. A connector is an exporter of some pipelines
// and a receiver of others: it passes the spans that it consumes to next. build must not open ports
// or files, and T must be a concrete type.
func Connector[C any, T Consumer](typ string, defaults func() C, build func(set Settings, config C, next Branches) (T, error)) Factory {
	return newFactory(KindConnector, typ, defaults, func(s Settings, c C, next Consumer) (T, error) { return build(s, c, next.(Branches)) })
}

// Extension returns the factory of an extension type. Extensions serve users and client programs
// beside the flow of spans. build must not open ports or files, and T must be a concrete type.
func Extension[C, T any](typ string, defaults func() C, build func(set Settings, config C) (T, error)) Factory {
	return newFactory(KindExtension, typ, defaults, func(s Settings, c C, _ Consumer) (T, error) { return build(s, c) })
}

func newFactory[C, T any](kind Kind, typ string, defaults func() C, build func(Settings, C, Consumer) (T, error)) Factory {
	checkTypeName(kind, typ)
	f := Factory{kind: kind, typ: typ, component: reflect.TypeFor[T]()}
	if f.component.Kind() == reflect.Interface {
		panic(fmt.Sprintf("pipeline: %s %q: build must return a concrete type, whose methods are known before it is built", kind, typ))
	}
	f.defaults = func() any {
		c := defaults()
		return &c
	}
	f.build = func(s Settings, config any, next Consumer) (any, error) {
		t, err := build(s, *config.(*C), next)
		if err != nil {
			return nil, err
		}
		return t, nil
	}
	return f
}

// checkTypeName panics if name cannot be the name of a type.
func checkTypeName(kind Kind, name string) {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || name == "" {
		panic(fmt.Sprintf("pipeline: %s %q: type names consist of a-z, 0-9 and _", kind, name))
	}
}

// Alias returns a copy of the factory with additional names of the type, which other programs use
// for it. A component that is configured by such a name keeps its ID, and a warning says what the
// type is called here. Alias panics if a name is not valid.
func (f Factory) Alias(names ...string) Factory {
	for _, name := range names {
		checkTypeName(f.kind, name)
	}
	f.aliases = slices.Concat(f.aliases, names)
	return f
}

// Doc returns a copy of the factory with a sentence that says what the component does, for the
// reference documentation.
func (f Factory) Doc(sentence string) Factory {
	f.doc = sentence
	return f
}

// Logs returns a copy of the factory whose components can also be in pipelines of log records.
// Batches have either signal, see otlpdata.Signal, but one processor or exporter never gets both:
// see [Settings.Signal]. A receiver asks with [Takes] what its pipelines take.
func (f Factory) Logs() Factory {
	f.logs = true
	return f
}

// TakesLogs reports whether Logs was called.
func (f Factory) TakesLogs() bool { return f.logs }

// Example returns a copy of the factory with a complete configuration in YAML that contains the
// component, for the reference documentation.
func (f Factory) Example(yaml string) Factory {
	f.example = yaml
	return f
}

// Flags returns a copy of the factory with additional command-line flags.
func (f Factory) Flags(flags ...Flag) Factory {
	f.flags = slices.Concat(f.flags, flags)
	return f
}

// Commands returns a copy of the factory with additional commands.
func (f Factory) Commands(list ...commands.Command) Factory {
	f.commands = slices.Concat(f.commands, list)
	return f
}

// Kind returns the kind of the components.
func (f Factory) Kind() Kind { return f.kind }

// Type returns the name of the type: the part of an [ID] before the slash.
func (f Factory) Type() string { return f.typ }

// Aliases returns the names given to Alias.
func (f Factory) Aliases() []string { return f.aliases }

// Summary returns the sentence given to Doc.
func (f Factory) Summary() string { return f.doc }

// ExampleConfig returns the configuration given to Example.
func (f Factory) ExampleConfig() string { return f.example }

// FlagList returns the flags given to Flags.
func (f Factory) FlagList() []Flag { return f.flags }

// CommandList returns the commands given to Commands.
func (f Factory) CommandList() []commands.Command { return f.commands }

// Defaults returns a pointer to a new configuration with all defaults.
func (f Factory) Defaults() any { return f.defaults() }

// ComponentType returns the Go type of the components. Its methods say what they can do.
func (f Factory) ComponentType() reflect.Type { return f.component }

// Build builds a component. config is a pointer as returned by Defaults; next is nil for exporters
// and extensions, and Branches for connectors.
func (f Factory) Build(set Settings, config any, next Consumer) (any, error) {
	return f.build(set, config, next)
}
