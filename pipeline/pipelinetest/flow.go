package pipelinetest

import (
	"context"
	"errors"
	"math/rand/v2"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// checkArrival sends one request after the other. Each is there when its sender has been told yes, not later.
func checkArrival(s *suite) {
	p := s.start()
	for range 12 {
		r := s.request()
		err := s.send(p, r)
		if err != nil {
			s.Errorf("the spans were refused: %v", err)
		}
		s.truth(p, told{r, err})
		s.origin(r)
	}
	if s.sub.forgets {
		return
	}
	if got, want := len(s.arrivals(p)), s.made*s.sub.requestSpans(); got != want {
		s.Errorf("%d different spans arrived, %d were sent", got, want)
	}
}

// checkArrivalByTheEnd stops the component after many have sent at once. What was sent before is there then.
func checkArrivalByTheEnd(s *suite) {
	p := s.start()
	all := s.callers(p, 4, 8, func(int) bool { return true })
	p.stop()
	for _, t := range all {
		if t.err != nil {
			s.Errorf("request %d could not be sent: %v", t.request.number, t.err)
			return
		}
	}
	s.truth(p, all...)
	s.origin(all[0].request)
}

// origin checks what a batch says about where it came from.
func (s *suite) origin(r request) {
	s.Helper()
	switch meta := s.ledger.metaOf(r.names[0]); s.sub.factory.Kind() {
	case pipeline.KindReceiver:
		if meta.Format == "" {
			s.Errorf("request %d: the batch does not say its format (Meta.Format), which metrics are labelled by", r.number)
		}
	case pipeline.KindProcessor:
		if meta.Tenant != r.tenant() {
			s.Errorf("request %d: of tenant %q, and arrived as one of tenant %q", r.number, r.tenant(), meta.Tenant)
		}
	}
}

// checkEmpty consumes a batch of no spans, which some clients send.
func checkEmpty(s *suite) {
	p := s.start()
	b := otlpdata.FromTraces(ptrace.NewTraces(), otlpdata.Meta{})
	if err := s.within("Consume", func() error { return p.source.Consume(context.Background(), b) }); err != nil {
		s.Errorf("a batch without spans: %v", err)
	}
}

// checkBatches looks at all batches again, those that were given and those that were passed on, when the component has had its chance to
// write to them.
func checkBatches(s *suite) {
	p := s.start()
	if all := s.callers(p, 4, 8, func(int) bool { return true }); s.sub.tellsAnswers() {
		s.truth(p, all...)
	}
	p.stop()
	for i, k := range s.sent {
		if what := k.changed(); what != "" {
			s.Errorf("batch %d, given to the component: %s", i, what)
		}
	}
	for i, k := range s.ledger.passed() {
		if what := k.changed(); what != "" {
			s.Errorf("batch %d, passed on by the component, after its Consume had returned: %s", i, what)
		}
	}
}

// checkOutcomes has the component refused in every way, and taken from in between.
func checkOutcomes(s *suite) {
	p := s.start()
	for _, refusal := range refusals() {
		s.ledger.always(refusal)
		r := s.request()
		err := s.send(p, r)
		if err == nil {
			s.Errorf("the spans were refused as %s, but the sender was told yes", classOf(refusal))
		}
		s.truth(p, told{r, err})
		s.ledger.always(nil)
		r = s.request()
		if err = s.send(p, r); err != nil {
			s.Errorf("still refused after the end of %q: %v", refusal, err)
		}
		s.truth(p, told{r, err})
	}
	s.partial(p)
}

// partial has some spans of a request refused for good. Sending them again would duplicate the others.
func (s *suite) partial(p *program) {
	s.Helper()
	refusal := &pipeline.Partial{Rejected: 1, Err: errors.New("one span is not wanted")}
	s.ledger.always(refusal)
	switch err := s.send(p, s.request()); {
	case errors.Is(err, errHung):
	case s.sub.factory.Kind() == pipeline.KindProcessor:
		if got := partialOf(err); got == nil || got.Rejected != refusal.Rejected {
			s.Errorf("a partial refusal of %d spans was told as: %v", refusal.Rejected, err)
		}
	case s.sub.factory.Kind() == pipeline.KindReceiver:
		if err != nil && !pipeline.IsPermanent(err) {
			s.Errorf("a part of the spans was taken, but the client was told to send all again: %v", err)
		}
	}
	s.ledger.always(nil)
}

// checkCallers has many callers answered at random.
func checkCallers(s *suite) {
	const callers, rounds, seed = 64, 4, 1
	random := rand.New(rand.NewPCG(seed, seed))
	errs := refusals()
	s.ledger.decide(func() error {
		if i := random.IntN(2 * len(errs)); i < len(errs) {
			return errs[i]
		}
		return nil
	})
	p := s.start()
	all := s.callers(p, callers, rounds, func(int) bool { return true })
	s.truth(p, all...)
	if !s.sub.answered() {
		for _, t := range all {
			if t.err != nil {
				s.Errorf("request %d was refused: %v", t.request.number, t.err)
			}
		}
	}
}

// checkContext ends the context of a call that hangs behind the component or, where nothing can, one that has not begun.
func checkContext(s *suite) {
	p := s.start()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := s.request()
	if !s.sub.answered() {
		cancel()
		s.truth(p, told{r, s.sendWith(ctx, p, r)})
		return
	}
	s.ledger.block()
	answer := make(chan error, 1)
	go func() { answer <- s.sendWith(ctx, p, r) }()
	if !s.ledger.await(1, s.patience) {
		s.Fatalf("a request did not arrive behind the component before its sender was answered")
	}
	cancel()
	if err := <-answer; err == nil {
		s.Errorf("the context ended before the spans were taken, but the sender was told yes")
	}
}
