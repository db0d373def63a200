package pipelinetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// defaultTimeout is the time after which the suite reports an operation as hung.
const defaultTimeout = 2 * time.Minute

// ReceiverOptions describe the configuration of a receiver and a client for it.
type ReceiverOptions struct {
	// Config is the configuration of the receiver in YAML. Its listeners use port 0.
	Config string
	// Listener is the name of the listener, as in [pipeline.Addressed].
	Listener string
	// Unanswered is set for a protocol without responses, such as datagrams. Send returns nil when
	// it has sent a request. The suite checks the spans when the receiver has stopped: by then it
	// has received everything.
	Unanswered bool
	// PartialSuccess is set for a protocol whose response contains the number of rejected spans.
	// Send then returns it as a [pipeline.Partial].
	PartialSuccess bool
	// Normalize removes data from spans that the protocol cannot transport or that the receiver
	// sets itself. The suite calls it for copies of the sent and the arrived spans, and compares
	// the remaining data. nil compares everything. Names must stay unique.
	Normalize func(spans ptrace.Traces)
	// Send makes one attempt to send spans to an address, as a client of the protocol does. It
	// returns nil if the client would consider the spans accepted, a permanent error (see
	// [pipeline.IsPermanent]) if the client would give up, and another error if it would retry.
	// Send is called concurrently. It closes its connections before the receiver is stopped.
	Send func(ctx context.Context, addr string, spans ptrace.Traces) error
}

// Receiver runs the suite for a receiver type.
func Receiver(t *testing.T, f pipeline.Factory, o ReceiverOptions) {
	run(t, receiverSubject(f, o))
}

func receiverSubject(f pipeline.Factory, o ReceiverOptions) *subject {
	return &subject{factory: f, config: fixed(o.Config), listener: o.Listener, send: o.Send, silent: o.Unanswered,
		normalize: o.Normalize, partial: o.PartialSuccess}
}

// ProcessorOptions describe the configuration of a processor and what it does.
type ProcessorOptions struct {
	// Config is the configuration of the processor in YAML.
	Config string
	// Expect changes a copy of a request's spans into the spans that the processor passes on. nil
	// means that the processor changes nothing. Some spans of each request must be left, with their
	// names.
	Expect func(spans ptrace.Traces)
}

// Processor runs the suite for a processor type.
func Processor(t *testing.T, f pipeline.Factory, o ProcessorOptions) {
	run(t, processorSubject(f, o))
}

func processorSubject(f pipeline.Factory, o ProcessorOptions) *subject {
	return &subject{factory: f, config: fixed(o.Config), expect: o.Expect, partial: true}
}

// Connector runs the suite for a connector type. Config may name the pipeline `traces/next`, which
// is the only one that the connector feeds.
func Connector(t *testing.T, f pipeline.Factory, o ProcessorOptions) { Processor(t, f, o) }

// ExporterOptions describe the configuration of an exporter and how to find what it has exported.
type ExporterOptions struct {
	// Config returns the configuration of the exporter in YAML. It is called once for each check.
	// For an exporter that sends to a next hop, Config starts a server, the far end, that passes
	// everything it receives to next and responds with the outcome. tb.Cleanup stops the server.
	// The suite disables the retries of [pipeline.Delivery]; the configuration must not have a
	// sending_queue.
	Config func(tb testing.TB, next pipeline.Consumer) string
	// NoTenant is set for a protocol that does not transport the tenant.
	NoTenant bool
	// NoPartialSuccess is set for a protocol whose response cannot contain the number of rejected
	// spans. Otherwise the far end responds to a [pipeline.Partial] of next with this number.
	NoPartialSuccess bool
	// Normalize removes data from spans that the protocol cannot transport. The suite calls it for
	// copies of the spans that were passed to the exporter and of the arrived spans, and compares
	// the remaining data. nil compares everything. Names must stay unique.
	Normalize func(spans ptrace.Traces)
	// Read is set for a store. It returns all spans of the [Tenants] in exporter, which is the
	// value that the factory has built, with their tenants in [otlpdata.Meta]. Config does not use
	// next then.
	Read func(exporter any) ([]*otlpdata.Batch, error)
	// Discards is set for an exporter that discards spans. The suite then does not check that they
	// arrive.
	Discards bool
}

// Exporter runs the suite for an exporter type.
func Exporter(t *testing.T, f pipeline.Factory, o ExporterOptions) {
	run(t, exporterSubject(f, o))
}

func exporterSubject(f pipeline.Factory, o ExporterOptions) *subject {
	return &subject{factory: f, config: o.Config, stored: o.Read, discards: o.Discards, normalize: o.Normalize,
		noTenant: o.NoTenant, partial: !o.NoPartialSuccess}
}

func fixed(config string) func(testing.TB, pipeline.Consumer) string {
	return func(testing.TB, pipeline.Consumer) string { return config }
}

// subject is the component type under test.
type subject struct {
	factory  pipeline.Factory
	config   func(tb testing.TB, next pipeline.Consumer) string
	listener string
	// send is nil if the suite calls Consume.
	send func(ctx context.Context, addr string, spans ptrace.Traces) error
	// stored is nil if spans arrive at the destination.
	stored    func(exporter any) ([]*otlpdata.Batch, error)
	expect    func(spans ptrace.Traces) // nil: nothing changes
	normalize func(spans ptrace.Traces) // nil: nothing is lost
	noTenant  bool                      // tenants are not transported
	partial   bool                      // senders get the number of rejected spans
	discards  bool
	silent    bool // senders get no response
}

// isProcessor reports whether the component is a processor.
func (s *subject) isProcessor() bool {
	return s.factory.Kind() == pipeline.KindProcessor || s.factory.Kind() == pipeline.KindConnector
}

// isConsumer reports whether the suite calls the component's Consume.
func (s *subject) isConsumer() bool { return s.factory.Kind() != pipeline.KindReceiver }

// hasDestination reports whether the component passes spans on to the destination.
func (s *subject) hasDestination() bool { return s.stored == nil && !s.discards }

// isSilent reports whether senders get no response.
func (s *subject) isSilent() bool { return s.silent }

// answers reports whether senders get a response.
func (s *subject) answers() bool { return !s.silent }

// passesAnswersOn reports whether senders get the outcome from the destination.
func (s *subject) passesAnswersOn() bool { return s.hasDestination() && s.answers() }

// check is one check of the suite. It runs for the subjects that on selects, or for all if on is
// nil.
type check struct {
	name string
	on   func(*subject) bool
	run  func(*suite)
}

func checks() []check {
	return []check{
		{"the configuration is documented", nil, checkConfig},
		{"building opens nothing", nil, checkBuild},
		{"starts, stops and restarts", nil, checkLifecycle},
		{"no goroutines after Stop", nil, checkLeaks},
		{"every span arrives once", (*subject).answers, checkArrival},
		{"every span has arrived after Stop", (*subject).isSilent, checkArrivalAfterStop},
		{"joined batches arrive whole", (*subject).isConsumer, checkJoined},
		{"a batch without spans", (*subject).answers, checkEmpty},
		{"batches are not modified", nil, checkBatches},
		{"outcomes are passed on", (*subject).passesAnswersOn, checkOutcomes},
		{"some spans are rejected", (*subject).passesAnswersOn, checkPartial},
		{"concurrent callers", (*subject).answers, checkCallers},
		{"the context ends a call", (*subject).isConsumer, checkContext},
		{"stops under load", nil, checkStopUnderLoad},
		{"stops at the deadline", (*subject).hasDestination, checkStopDeadline},
	}
}

func run(t *testing.T, sub *subject) {
	for _, c := range checks() {
		if c.on == nil || c.on(sub) {
			t.Run(c.name, func(t *testing.T) { c.run(newSuite(t, sub)) })
		}
	}
}

// suite is the state of one running check.
type suite struct {
	testing.TB
	sub         *subject
	timeout     time.Duration
	destination *destination

	mu   sync.Mutex
	made int        // number of requests
	sent []snapshot // batches passed to the component
}

func newSuite(tb testing.TB, sub *subject) *suite {
	s := &suite{TB: tb, sub: sub, timeout: defaultTimeout, destination: newDestination(sub.read)}
	tb.Cleanup(s.destination.release) // so that no call outlives the check
	return s
}
