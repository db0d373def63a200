package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/internal/commands/canary"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// readInterval is the time between attempts to read a test span that has not been found yet.
const readInterval = 100 * time.Millisecond

// checkSpans sends a test span through each receiver, and reads it back through the query API.
func checkSpans(ctx context.Context, x *examination) []Finding {
	var probes []*probe
	for i := range x.listeners {
		l := &x.listeners[i]
		if spans, _ := x.config.Signals(l.component); spans && l.component.Key.Kind == pipeline.KindReceiver {
			probes = append(probes, x.probesOf(l)...)
		}
	}
	if len(probes) == 0 {
		return []Finding{newFinding("", Skipped, "no receivers of spans in the configuration")}
	}
	// The rest of the time is for the response to the last attempt.
	ctx, cancel := context.WithTimeout(ctx, x.timeout*9/10)
	defer cancel()
	found := make([]Finding, len(probes))
	var all sync.WaitGroup
	for i, p := range probes {
		all.Go(func() { found[i] = x.probe(ctx, p) })
	}
	all.Wait()
	return found
}

// probe is a test span for a protocol of a listener.
type probe struct {
	listener *listener
	name     string // of the protocol, if the listener has several; else ""
	send     func(ctx context.Context, x *examination, l *listener, s *testSpan) error
}

// probesOf returns the test spans for a listener. A listener of an unknown type has one without a
// function.
func (x *examination) probesOf(l *listener) []*probe {
	for _, s := range senders() {
		if l.component.Factory.Type() != s.typ || l.path != s.path {
			continue
		}
		var out []*probe
		for _, p := range s.protocols {
			out = append(out, &probe{listener: l, name: p.name, send: p.send})
		}
		return out
	}
	return []*probe{{listener: l}}
}

// probe sends a test span, waits until it can be read, and compares it.
func (x *examination) probe(ctx context.Context, p *probe) Finding {
	l := p.listener
	subject := strings.TrimSpace(l.String() + " " + p.name)
	skipped := x.unauthenticated(l)
	switch {
	case !x.process.running:
		skipped = x.process.absence()
	case p.send == nil:
		skipped = fmt.Sprintf("this command has no client for the protocol of receivers of type %q", l.component.Factory.Type())
	}
	if own := text(l.component, "tenant"); skipped == "" && l.network == "udp" && own != x.tenant && x.separatesTenants() {
		skipped = fmt.Sprintf("datagrams have the tenant of the receiver (%q), not the tenant of --tenant (%q)", own, x.tenant)
	}
	if skipped != "" {
		return newFinding(subject, Skipped, "%s", skipped)
	}
	s := newTestSpan(x.env, subject)
	began := time.Now()
	if err := p.send(ctx, x, l, s); err != nil {
		return newFinding(subject, Problem, "test span was not accepted: %v", err).
			advise("look at the log of the process and at docs/troubleshooting.md; the response says which limit or component refuses spans")
	}
	accepted := time.Since(began)
	if x.query == "" {
		return newFinding(subject, Skipped, "accepted in %s; without the query service it is unknown whether it arrived", roundTime(accepted)).
			advise("give --query URL of the installation that stores the spans")
	}
	return x.readBack(ctx, subject, s, began)
}

// separatesTenants reports whether a listener of the configuration requires tenants.
func (x *examination) separatesTenants() bool {
	return slices.ContainsFunc(x.listeners, func(l listener) bool { return l.security.SeparatesTenants() })
}

// readBack tries to read a test span until it is found or the time is up.
func (x *examination) readBack(ctx context.Context, subject string, s *testSpan, began time.Time) Finding {
	reader := x.reader()
	for {
		spans, err := reader.Spans(ctx, s.trace)
		switch {
		case len(spans) > 0:
			return judgeSpans(subject, s, spans, time.Since(began))
		case ctx.Err() != nil && (err == nil || isTimeout(err)):
			return x.lost(subject, s)
		case err != nil:
			return newFinding(subject, Problem, "cannot read the test span through %s: %s",
				pipeline.MaskURLs(x.query), pipeline.MaskURLs(err.Error())).
				advise("check that the query service runs, and give its URL with --query and credentials with --header")
		}
		pause(ctx, readInterval)
	}
}

// judgeSpans compares the spans that were read with the test span.
func judgeSpans(subject string, s *testSpan, spans []canary.ReadSpan, took time.Duration) Finding {
	got := spans[0]
	var wrong []string
	differ := func(what string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			wrong = append(wrong, fmt.Sprintf("%s is %v instead of %v", what, got, want))
		}
	}
	differ("number of spans", len(spans), 1)
	differ("service", got.Service, serviceName)
	differ("operation", got.Operation, s.name)
	differ("tag "+subjectKey, got.Tags[subjectKey], s.subject)
	if len(wrong) > 0 {
		return newFinding(subject, Warning, "test span came back changed: %s", strings.Join(wrong, ", ")).
			advise("this is right if a processor changes or copies spans on purpose")
	}
	return newFinding(subject, OK, "test span came back after %s", roundTime(took))
}

// lost judges a test span that was accepted but is not found.
func (x *examination) lost(subject string, s *testSpan) Finding {
	message := fmt.Sprintf("test span %s was accepted, but is not found through %s", s.trace, pipeline.MaskURLs(x.query))
	if dropping := x.dropping(); len(dropping) > 0 {
		return newFinding(subject, Warning, "%s; %s may drop it on purpose", message, strings.Join(dropping, ", ")).
			advise("exempt the service %s, or ignore this", serviceName)
	}
	return newFinding(subject, Problem, "%s", message).
		advise("compare the counters on the page /status of each process in between; see docs/troubleshooting.md. " +
			"Datagrams can be lost silently. With a queue, try a longer --timeout")
}

// dropping returns the components of the configuration that drop or delay spans on purpose.
func (x *examination) dropping() (all []string) {
	types := []string{"probabilistic_sampler", "tail_sampling", "filter", "groupbytrace", "routing"}
	for _, c := range x.used {
		if slices.Contains(types, c.Factory.Type()) {
			all = append(all, key(c))
		}
	}
	return all
}

// subjectKey is the attribute of a test span that names the receiver.
const subjectKey = "doctor.receiver"

// testSpan is a span for sending through a receiver.
type testSpan struct {
	trace         otlpdata.TraceID
	id            otlpdata.SpanID
	name, subject string
	start         time.Time
	duration      time.Duration
}

func newTestSpan(env pipeline.Env, subject string) *testSpan {
	const duration = time.Millisecond
	s := &testSpan{name: "doctor", subject: subject, duration: duration,
		start: env.Now().Add(-duration).Truncate(time.Microsecond)} // Thrift and Zipkin have a resolution of microseconds
	binary.BigEndian.PutUint64(s.trace[:8], env.Rand()|1)
	binary.BigEndian.PutUint64(s.trace[8:], env.Rand()|1)
	binary.BigEndian.PutUint64(s.id[:], env.Rand()|1)
	return s
}

// encode returns the span as an ExportTraceServiceRequest.
func (s *testSpan) encode() []byte {
	var b otlpdata.Builder
	b.Resource([]otlpdata.KeyValue{{Key: "service.name", Value: otlpdata.StringValue(serviceName)}})
	b.Scope("", "", nil)
	b.Span(&otlpdata.Span{
		TraceID: s.trace, SpanID: s.id, Name: s.name, Kind: otlpdata.KindInternal, Flags: 1,
		Start: uint64(s.start.UnixNano()), End: uint64(s.start.Add(s.duration).UnixNano()),
		Attributes: []otlpdata.KeyValue{{Key: subjectKey, Value: otlpdata.StringValue(s.subject)}},
	})
	return b.Bytes()
}

// batch returns the span as a batch, for translations to other formats.
func (s *testSpan) batch() (*otlpdata.Batch, error) {
	return otlpdata.FromOTLP(s.encode(), otlpdata.Meta{}, otlpdata.DefaultLimits())
}

// isTimeout reports whether a request ended because of a time limit.
func isTimeout(err error) bool {
	timeout := net.Error(nil)
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
