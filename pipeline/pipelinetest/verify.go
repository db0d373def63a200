package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
)

// errHung is the outcome of a call that did not return. It has been reported.
var errHung = errors.New("no answer")

// within runs f, and reports a failure and returns errHung if f does not return before the timeout.
func (s *suite) within(what string, f func() error) error {
	s.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	late := time.NewTimer(s.timeout)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		s.Errorf("%s did not return after %s", what, s.timeout)
		return errHung
	}
}

// send sends a request to the component and returns the outcome.
func (s *suite) send(p *program, r request) error {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	return s.sendWith(ctx, p, r)
}

func (s *suite) sendWith(ctx context.Context, p *program, r request) error {
	s.Helper()
	if s.sub.isConsumer() {
		b := s.batch(r)
		return s.within("Consume", func() error { return p.source.Consume(ctx, b) })
	}
	id := pipeline.ID{Type: s.sub.factory.Type()}
	addr := p.app.Addr(id, s.sub.listener)
	return s.within("sending", func() error { return s.sub.send(ctx, addr, r.traces) })
}

// outcome is the response to a request.
type outcome struct {
	request request
	err     error
}

// callers sends requests from several goroutines until each has sent the given number of rounds, or
// until more returns false.
func (s *suite) callers(p *program, callers, rounds int, more func(done int) bool) []outcome {
	var (
		all     []outcome
		mu      sync.Mutex
		sending sync.WaitGroup
	)
	for range callers {
		sending.Go(func() {
			for range rounds {
				r := s.request()
				o := outcome{r, s.send(p, r)}
				mu.Lock()
				all = append(all, o)
				n := len(all)
				mu.Unlock()
				if !more(n) {
					return
				}
				if o.err != nil {
					time.Sleep(time.Millisecond) // as a client does, so that refusing costs no CPU time
				}
			}
		})
	}
	sending.Wait()
	return all
}

// arrivals returns the spans that have arrived, by name.
func (s *suite) arrivals(p *program) map[string][]content {
	s.Helper()
	if s.sub.stored == nil {
		arrived, err := s.destination.arrivals()
		if err != nil {
			s.Errorf("a batch that was passed on is invalid: %v", err)
		}
		return arrived
	}
	arrived := map[string][]content{}
	batches, err := s.sub.stored(p.exporter)
	if err != nil {
		s.Fatalf("reading the store: %v", err)
	}
	for _, b := range batches {
		spans, err := s.sub.read(b)
		if err != nil {
			s.Fatalf("reading the store: %v", err)
		}
		for _, span := range spans {
			arrived[span.name] = append(arrived[span.name], span.content)
		}
	}
	return arrived
}

// maxMismatches is the maximum number of requests with the same outcome that are reported.
const maxMismatches = 5

// verify compares outcomes with the arrived spans, and reports the first mismatch of each request:
// acknowledged requests first, then the others.
func (s *suite) verify(p *program, all ...outcome) {
	s.Helper()
	if s.sub.discards {
		return
	}
	var acknowledged, others []string
	arrived := s.arrivals(p)
	for _, o := range all {
		switch text := s.mismatch(o, arrived); {
		case text == "":
		case o.err == nil:
			acknowledged = append(acknowledged, fmt.Sprintf("%s: %s", o.request, text))
		default:
			others = append(others, fmt.Sprintf("%s: %s", o.request, text))
		}
	}
	s.report(acknowledged)
	s.report(others)
}

// report reports mismatches, which may be many.
func (s *suite) report(mismatches []string) {
	s.Helper()
	for _, text := range mismatches[:min(len(mismatches), maxMismatches)] {
		s.Errorf("%s", text)
	}
	if more := len(mismatches) - maxMismatches; more > 0 {
		s.Errorf("%d more requests", more)
	}
}

// mismatch describes how an outcome differs from the arrived spans, or returns "".
func (s *suite) mismatch(o outcome, arrived map[string][]content) string {
	if errors.Is(o.err, errHung) {
		return ""
	}
	if o.err != nil {
		for _, name := range o.request.names {
			if len(arrived[name]) > 0 {
				return fmt.Sprintf("refused (%v), but %s arrived and would be resent", o.err, name)
			}
		}
		return s.wrongClass(o.err, s.destination.refusal(o.request.names[0]))
	}
	for _, span := range o.request.want() {
		switch a := arrived[span.name]; {
		case len(a) == 0:
			return fmt.Sprintf("acknowledged, but %s did not arrive", span.name)
		case len(a) > 1:
			return fmt.Sprintf("%s was sent once and arrived %d times", span.name, len(a))
		default:
			if text := span.content.differs(a[0]); text != "" {
				return fmt.Sprintf("%s arrived with a different content: %s", span.name, text)
			}
		}
	}
	return ""
}

// wrongClass describes how the class of an error differs from the class of the destination's
// refusal, or returns "". A processor passes the class on unchanged. Over a network, a permanent
// error stays permanent and any other error does not become permanent.
func (s *suite) wrongClass(got, refusal error) string {
	if refusal == nil {
		return ""
	}
	if !s.sub.isProcessor() {
		if g, w := pipeline.IsPermanent(got), pipeline.IsPermanent(refusal); g != w {
			return fmt.Sprintf("the refusal %q is %s, but the response is %s: %v", refusal, permanence(w), permanence(g), got)
		}
		return ""
	}
	if g, w := classOf(got), classOf(refusal); g != w {
		return fmt.Sprintf("the refusal %q is %s, but the response is %s: %v", refusal, w, g, got)
	}
	return ""
}

func permanence(permanent bool) string {
	if permanent {
		return "permanent"
	}
	return "temporary"
}

// classOf describes the class of an error by the statuses that it maps to.
func classOf(err error) string {
	code, after := pipeline.HTTPStatus(err)
	s := fmt.Sprintf("%s (%d, %s)", permanence(pipeline.IsPermanent(err)), code, pipeline.GRPCStatus(err).Code())
	if after > 0 {
		s += fmt.Sprintf(" after %s", after)
	}
	if p := partialOf(err); p != nil {
		s += fmt.Sprintf(" for %d spans", p.Rejected)
	}
	return s
}

func partialOf(err error) *pipeline.Partial {
	var p *pipeline.Partial
	errors.As(err, &p)
	return p
}

// refusals returns errors of every class, including errors of a next hop.
func refusals() []error {
	return []error{
		pipeline.Permanent(errors.New("invalid spans")),
		pipeline.Overloaded(errors.New("too many requests"), 7*time.Second),
		errors.New("temporarily unavailable"),
		fmt.Errorf("next hop: %w", status.Error(codes.Unavailable, "temporarily unavailable")),
		fmt.Errorf("next hop: %w", status.Error(codes.InvalidArgument, "invalid spans")),
	}
}
