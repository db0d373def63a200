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

// defaultPatience is how long the suite waits for what should take no time, before it calls it hung.
const defaultPatience = 20 * time.Second

// ReceiverOptions say how to configure a receiver and how to talk to it.
type ReceiverOptions struct {
	// Config is the YAML of the receiver's block. Listeners bind port 0.
	Config string
	// Listener is the name that the receiver's Addr (see [pipeline.Addressed]) knows the listener by.
	Listener string
	// Spans is how many spans a request has; 0 is a few. It is 1 for a protocol that answers each span by itself.
	Spans int
	// Unanswered is set for a protocol without answers, such as one of datagrams. Send returns nil once a request has been sent, and the
	// suite looks for its spans when the receiver has been stopped: by then it has taken all that was sent before.
	Unanswered bool
	// Send makes one attempt to send spans to an address, as a client of the protocol does, and returns how the client understands the
	// answer: nil for yes, an error that [pipeline.IsPermanent] holds for when the client would give up, any other when it would try
	// again. It is called by many goroutines at once and leaves no connection open that outlives the receiver.
	Send func(ctx context.Context, addr string, spans ptrace.Traces) error
}

// Receiver runs the suite for a receiver type.
func Receiver(t *testing.T, f pipeline.Factory, o ReceiverOptions) {
	run(t, receiverSubject(f, o))
}

func receiverSubject(f pipeline.Factory, o ReceiverOptions) *subject {
	return &subject{factory: f, config: fixed(o.Config), listener: o.Listener, spans: o.Spans, send: o.Send, silent: o.Unanswered}
}

// Processor runs the suite for a processor type. config is the YAML of its block, with which it lets every span pass.
func Processor(t *testing.T, f pipeline.Factory, config string) {
	run(t, processorSubject(f, config))
}

func processorSubject(f pipeline.Factory, config string) *subject {
	return &subject{factory: f, config: fixed(config)}
}

// ExporterOptions say how to configure an exporter and how to find what it exported.
type ExporterOptions struct {
	// Config returns the YAML of the exporter's block, and is called once for each check. For an exporter that sends to a next hop it
	// first starts a server which gives everything it receives to next and answers with the outcome; tb.Cleanup stops the server.
	// Retries of [pipeline.Delivery] are switched off, since they are not the exporter's; a sending_queue must not be configured.
	Config func(tb testing.TB, next pipeline.Consumer) string
	// Read is set for a store: it returns everything that exporter, which is what the factory built, holds for the tenants of [Tenants].
	// next is not used then.
	Read func(exporter any) ([]*otlpdata.Batch, error)
	// Forgets is set for an exporter that keeps spans nowhere. What became of them is not checked then.
	Forgets bool
}

// Exporter runs the suite for an exporter type.
func Exporter(t *testing.T, f pipeline.Factory, o ExporterOptions) {
	run(t, exporterSubject(f, o))
}

func exporterSubject(f pipeline.Factory, o ExporterOptions) *subject {
	return &subject{factory: f, config: o.Config, read: o.Read, forgets: o.Forgets}
}

func fixed(config string) func(testing.TB, pipeline.Consumer) string {
	return func(testing.TB, pipeline.Consumer) string { return config }
}

// subject is the component type under test, of whichever kind.
type subject struct {
	factory  pipeline.Factory
	config   func(tb testing.TB, next pipeline.Consumer) string
	listener string
	spans    int                                                               // of a request; 0: spansPerRequest
	send     func(ctx context.Context, addr string, spans ptrace.Traces) error // nil: the suite calls Consume
	read     func(exporter any) ([]*otlpdata.Batch, error)                     // nil: spans arrive in the ledger
	forgets  bool
	silent   bool // senders are told nothing
}

// called reports whether the suite calls the component's Consume itself.
func (s *subject) called() bool { return s.factory.Kind() != pipeline.KindReceiver }

// answered reports whether the ledger stands behind the component and answers it.
func (s *subject) answered() bool { return s.read == nil && !s.forgets }

// isSilent reports whether senders learn nothing; tells that they learn the outcome.
func (s *subject) isSilent() bool { return s.silent }
func (s *subject) tells() bool    { return !s.silent }

// tellsAnswers reports whether they learn the ledger's.
func (s *subject) tellsAnswers() bool { return s.answered() && s.tells() }

// check is one promise. on says which subjects make it; nil: all.
type check struct {
	name string
	on   func(*subject) bool
	run  func(*suite)
}

func checks() []check {
	return []check{
		{"the configuration is documented", nil, checkConfig},
		{"building opens nothing", nil, checkBuild},
		{"starts, stops and starts again", nil, checkLifecycle},
		{"nothing stays behind", nil, checkLeaks},
		{"every span arrives once", (*subject).tells, checkArrival},
		{"every span has arrived by the end", (*subject).isSilent, checkArrivalByTheEnd},
		{"a batch without spans", (*subject).called, checkEmpty},
		{"batches stay as they are", nil, checkBatches},
		{"outcomes are told", (*subject).tellsAnswers, checkOutcomes},
		{"many callers at once", (*subject).tells, checkCallers},
		{"the context ends a call", (*subject).called, checkContext},
		{"stops under load", nil, checkStopUnderLoad},
		{"stops at the deadline", (*subject).answered, checkStopDeadline},
	}
}

func run(t *testing.T, sub *subject) {
	for _, c := range checks() {
		if c.on == nil || c.on(sub) {
			t.Run(c.name, func(t *testing.T) { c.run(newSuite(t, sub)) })
		}
	}
}

// suite is one check under way.
type suite struct {
	testing.TB
	sub      *subject
	patience time.Duration
	ledger   *ledger

	mu   sync.Mutex
	made int    // requests
	sent []kept // batches given to the component
}

func newSuite(tb testing.TB, sub *subject) *suite {
	s := &suite{TB: tb, sub: sub, patience: defaultPatience, ledger: newLedger()}
	tb.Cleanup(s.ledger.release) // whoever still waits must not outlive the check
	return s
}
