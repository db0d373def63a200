package pipeline

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// Consumer accepts spans. Processors and exporters are Consumers, and so is the next argument that
// the framework passes to receivers and processors.
//
// Consume returns nil once all spans of b are where the pipeline says they are: stored, queued, or
// accepted by the next hop. An error other than [Partial] means that no span was accepted. The
// class of the error decides what happens next: errors marked with [Permanent] are not retried,
// errors marked with [Overloaded] are retried after their delay, and all others may be retried.
//
// Consume is called concurrently. It may block, but must return soon after ctx ends. A Batch is
// immutable, so an implementation may keep it after Consume has returned.
type Consumer interface {
	Consume(ctx context.Context, b *otlpdata.Batch) error
}

// Starter is implemented by components that listen, connect, open files or run goroutines.
//
// Start is called at most once and returns when the component is ready. ctx limits the start, not
// the work that follows. A component whose destination is unreachable starts nevertheless and
// reports the problem with [Settings.Report].
type Starter interface {
	Start(ctx context.Context) error
}

// Stopper is implemented by components that must be stopped.
//
// Stop is called exactly once, after Start has succeeded, or after the component was built if it
// has no Start. It accepts no new work, finishes the work that was accepted, and returns. When ctx
// ends, it returns immediately with an error that says what is unfinished.
type Stopper interface {
	Stop(ctx context.Context) error
}

// Replaceable is implemented by components that can run at the same time as their replacement when
// the configuration is reloaded: they hold nothing exclusively except sockets, which the
// replacement gets from [Env.Listen] and [Env.ListenPacket] while they are still open. All
// exporters, and other components that have Start, are stopped before their replacement is started.
//
// HandOver is called before Stop, normally after the replacement has started. It accepts no new
// connections, continues to serve the open ones, asks their clients to reconnect, and returns when
// they have done so or ctx ends. It is not called when the process stops.
type Replaceable interface {
	HandOver(ctx context.Context)
}

// MaxWaiter is implemented by receivers whose clients do not wait for a response. MaxWait is called
// for each batch and replaces service.limits.max_wait: it returns the maximum time until Consume
// returns, or 0 for no limit.
type MaxWaiter interface {
	MaxWait() time.Duration
}

// Kind is the kind of a component.
type Kind uint8

// Kinds of components.
const (
	KindReceiver Kind = iota + 1
	KindProcessor
	KindExporter
	KindConnector
	KindExtension
)

// String returns `receiver`, `processor`, `exporter`, `connector` or `extension`.
func (k Kind) String() string {
	return [...]string{"component", "receiver", "processor", "exporter", "connector", "extension"}[k]
}

// Section returns the key of the configuration section that holds components of this kind:
// `receivers`, `processors`, `exporters`, `connectors` or `extensions`.
func (k Kind) Section() string { return k.String() + "s" }

// Settings is what the framework passes to a component when it builds it. A component reaches the
// outside only through its Settings, so that tests can replace everything.
type Settings struct {
	ID          ID
	Signal      otlpdata.Signal       // what a processor or exporter consumes
	Logger      *zap.Logger           // has the fields component and kind
	Metrics     prometheus.Registerer // adds the labels component and kind
	Dir         string                // private folder below service.data_dir; not created yet
	Env         Env                   // files, clock, randomness, network
	Budget      *Budget               // bytes of requests in flight, shared by the whole process
	QueryMemory *Budget               // bytes that queries hold, shared by the whole process
	// Connections counts another connection of a listener and returns the function that counts it
	// as closed. If service.limits.connections is reached and must is false, it returns nil: the
	// connection is refused. If Connections is nil, as in tests, all connections are admitted.
	Connections func(must bool) (release func())
	// Report reports the component as degraded, or with nil as recovered. While the last err is
	// marked with NotReady, the process is not ready.
	Report  func(err error)
	Process Process // state of the whole process
	// Tracer makes spans about the work of the component. Nil, as in tests and for extensions that
	// observe the process, makes none.
	Tracer *selftrace.Tracer
	// Refused records that a listener refused n requests or datagrams before their spans were read.
	// It is nil for components that are not receivers.
	Refused func(transport, reason string, n int)
	// HeldMemory limits the bytes that all processors together hold; see [Holder]. It is nil for
	// components that are not processors.
	HeldMemory *Budget
	// HeldTenants is the maximum number of tenants, besides the default one, whose spans a Holder
	// holds at the same time.
	HeldTenants int
	// Dropped records that a Holder dropped n accepted spans. Made records that it passed on n
	// spans that it created itself. Both are nil for components that are not a Holder.
	Dropped func(spans int, reason string)
	Made    func(spans int)
	// Write returns the Consumer through which an extension writes to an exporter that it refers
	// to, so that the spans are counted. See Counted.
	Write func(exporter Consumer) Consumer
}

// Counted returns a Consumer that passes spans to an exporter from a [Ref] of an extension. Like
// the spans of a pipeline, they pass through the counters, queue and retries of the exporter, and
// the extension counts them as a receiver does. Without a framework, in tests, it returns the
// exporter.
func (s *Settings) Counted(exporter Consumer) Consumer {
	if s.Write == nil {
		return exporter
	}
	return s.Write(exporter)
}
