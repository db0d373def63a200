package pipeline

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Consumer takes spans: a processor, an exporter, or what the framework puts in front of them.
//
// Consume returns nil once responsibility for all spans of b is taken: they are where the pipeline says they are (stored, queued, or
// accepted by the next hop). Any error means that none is, unless it is a [Partial]. The class of the error decides what happens next:
// [Permanent] is never retried, [Overloaded] after its delay, everything else may be tried again. Consume is called by many goroutines
// at once, blocks as long as it needs to, and must return soon after ctx ends. It borrows b until it returns; a Batch is immutable, so
// whoever keeps it longer just keeps it.
type Consumer interface {
	Consume(ctx context.Context, b *otlpdata.Batch) error
}

// Starter begins work. Start is called at most once and returns when the component is ready; ctx ends the start, not the work. A
// component whose destination is down starts all the same, and says so through [Settings.Report].
type Starter interface {
	Start(ctx context.Context) error
}

// Stopper ends work. Stop is called exactly once, and only after a good Start (or after a good build, for a component that has no
// Start). It takes no new work, finishes what it took, and returns; when ctx ends it returns at once and reports what it left.
type Stopper interface {
	Stop(ctx context.Context) error
}

// Kind is one of the four kinds of component.
type Kind uint8

// The kinds, as the sections of a configuration file name them.
const (
	KindReceiver Kind = iota + 1
	KindProcessor
	KindExporter
	KindExtension
)

// String returns `receiver`, `processor`, `exporter` or `extension`.
func (k Kind) String() string {
	return [...]string{"component", "receiver", "processor", "exporter", "extension"}[k]
}

// section returns the key of the configuration section that holds components of this kind.
func (k Kind) section() string { return k.String() + "s" }

// Settings is what a component gets from the framework when it is built. Everything it does to the outside goes through here.
type Settings struct {
	ID      ID
	Logger  *zap.Logger           // carries component and kind
	Metrics prometheus.Registerer // adds the labels component and kind
	Dir     string                // private directory under service.data_dir; made by who uses it
	Env     Env                   // clock, randomness, network
	Budget  *Budget               // bytes in flight, shared by the whole process
	Report  func(err error)       // nil: healthy again; else degraded, with the reason
	Process Process               // the process as a whole, for components that show it
}

// Factory makes components of one type. It is a value, made by [Receiver], [Processor], [Exporter] or [Extension], and holds the type's
// configuration, defaults and builder.
type Factory struct {
	kind      Kind
	typ       string
	doc       string
	flags     []Flag
	commands  []Command
	component reflect.Type
	defaults  func() any // a pointer to a fresh config
	build     func(set Settings, config any, next Consumer) (any, error)
}

// Receiver makes the factory of a receiver type. build must not open ports or files; R must be a concrete type.
func Receiver[C any, R Starter](typ string, defaults func() C, build func(Settings, C, Consumer) (R, error)) Factory {
	return newFactory(KindReceiver, typ, defaults, build)
}

// Processor makes the factory of a processor type: what it builds consumes and passes on to next.
func Processor[C any, P Consumer](typ string, defaults func() C, build func(set Settings, config C, next Consumer) (P, error)) Factory {
	return newFactory(KindProcessor, typ, defaults, build)
}

// Exporter makes the factory of an exporter type: a store or a next hop. A store is an exporter that others can also read, see [Ref].
func Exporter[C any, E Consumer](typ string, defaults func() C, build func(Settings, C) (E, error)) Factory {
	return newFactory(KindExporter, typ, defaults, func(s Settings, c C, _ Consumer) (E, error) { return build(s, c) })
}

// Extension makes the factory of an extension type: what serves people and clients beside the flow of spans.
func Extension[C, T any](typ string, defaults func() C, build func(Settings, C) (T, error)) Factory {
	return newFactory(KindExtension, typ, defaults, func(s Settings, c C, _ Consumer) (T, error) { return build(s, c) })
}

func newFactory[C, T any](kind Kind, typ string, defaults func() C, build func(Settings, C, Consumer) (T, error)) Factory {
	if strings.Trim(typ, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || typ == "" {
		panic(fmt.Sprintf("pipeline: %s %q: a type name is made of a-z, 0-9 and _", kind, typ))
	}
	f := Factory{kind: kind, typ: typ, component: reflect.TypeFor[T]()}
	if f.component.Kind() == reflect.Interface {
		panic(fmt.Sprintf("pipeline: %s %q: build must return a concrete type, so that what it can do is known before it is built", kind, typ))
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

// Doc returns the factory with a sentence that says what the component is for.
func (f Factory) Doc(sentence string) Factory {
	f.doc = sentence
	return f
}

// Kind returns the kind of component that the factory makes.
func (f Factory) Kind() Kind { return f.kind }

// Type returns the type name, the part of an id before the slash.
func (f Factory) Type() string { return f.typ }

// Summary returns the sentence given to Doc.
func (f Factory) Summary() string { return f.doc }

// Defaults returns a pointer to a fresh configuration with all defaults.
func (f Factory) Defaults() any { return f.defaults() }
