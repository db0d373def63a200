package pipelinetest

import (
	"context"
	"errors"
	"math/rand/v2"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// checkArrival sends requests one after the other. The spans of each must have arrived when it is
// acknowledged.
func checkArrival(s *suite) {
	p := s.start()
	for range 12 {
		r := s.request()
		err := s.send(p, r)
		if err != nil {
			s.Errorf("the request was refused: %v", err)
		}
		s.verify(p, outcome{r, err})
		s.origin(r)
	}
	if s.sub.discards {
		return
	}
	if got, want := len(s.arrivals(p)), s.made*s.sub.requestSpans(); got != want {
		s.Errorf("%d distinct spans arrived, %d were sent", got, want)
	}
}

// checkArrivalAfterStop stops the component after concurrent senders. All spans must have arrived
// then.
func checkArrivalAfterStop(s *suite) {
	p := s.start()
	all := s.callers(p, 4, 8, func(int) bool { return true })
	p.stop()
	for _, t := range all {
		if t.err != nil {
			s.Errorf("sending request %d: %v", t.request.number, t.err)
			return
		}
	}
	s.verify(p, all...)
	s.origin(all[0].request)
}

// origin checks the metadata of a batch that has arrived.
func (s *suite) origin(r request) {
	s.Helper()
	switch meta := s.destination.metaOf(r.names[0]); s.sub.factory.Kind() {
	case pipeline.KindReceiver:
		if meta.Format == "" {
			s.Errorf("request %d: Meta.Format of the batch is empty; metrics need it as a label", r.number)
		}
	case pipeline.KindProcessor:
		if meta.Tenant != r.tenant() {
			s.Errorf("request %d: sent with tenant %q, arrived with tenant %q", r.number, r.tenant(), meta.Tenant)
		}
	}
}

// checkEmpty consumes a batch without spans, which some clients send.
func checkEmpty(s *suite) {
	p := s.start()
	b := otlpdata.FromTraces(ptrace.NewTraces(), otlpdata.Meta{})
	if err := s.within("Consume", func() error { return p.source.Consume(context.Background(), b) }); err != nil {
		s.Errorf("a batch without spans: %v", err)
	}
}

// checkBatches checks that the component has not modified the batches that it received and those
// that it passed on.
func checkBatches(s *suite) {
	p := s.start()
	if all := s.callers(p, 4, 8, func(int) bool { return true }); s.sub.passesAnswersOn() {
		s.verify(p, all...)
	}
	p.stop()
	for i, k := range s.sent {
		if what := k.changed(); what != "" {
			s.Errorf("batch %d, passed to the component: %s", i, what)
		}
	}
	for i, k := range s.destination.passed() {
		if what := k.changed(); what != "" {
			s.Errorf("batch %d, passed on by the component, after Consume has returned: %s", i, what)
		}
	}
}

// checkOutcomes refuses a request with every class of error, and accepts one in between.
func checkOutcomes(s *suite) {
	p := s.start()
	for _, refusal := range refusals() {
		s.destination.always(refusal)
		r := s.request()
		err := s.send(p, r)
		if err == nil {
			s.Errorf("the spans were refused (%s), but the request was acknowledged", classOf(refusal))
		}
		s.verify(p, outcome{r, err})
		s.destination.always(nil)
		r = s.request()
		if err = s.send(p, r); err != nil {
			s.Errorf("refused, although the destination accepts spans again after %q: %v", refusal, err)
		}
		s.verify(p, outcome{r, err})
	}
	s.partial(p)
}

// partial rejects some spans of a request permanently. Sending the request again would duplicate
// the others.
func (s *suite) partial(p *program) {
	s.Helper()
	refusal := &pipeline.Partial{Rejected: 1, Err: errors.New("invalid span")}
	s.destination.always(refusal)
	switch err := s.send(p, s.request()); {
	case errors.Is(err, errHung):
	case s.sub.factory.Kind() == pipeline.KindProcessor:
		if got := partialOf(err); got == nil || got.Rejected != refusal.Rejected {
			s.Errorf("%d spans were rejected, but the caller got: %v", refusal.Rejected, err)
		}
	case s.sub.factory.Kind() == pipeline.KindReceiver:
		if err != nil && !pipeline.IsPermanent(err) {
			s.Errorf("some spans were accepted, but the client would send all of them again: %v", err)
		}
	}
	s.destination.always(nil)
}

// checkCallers answers concurrent callers at random.
func checkCallers(s *suite) {
	const callers, rounds, seed = 64, 4, 1
	random := rand.New(rand.NewPCG(seed, seed))
	errs := refusals()
	s.destination.decide(func() error {
		if i := random.IntN(2 * len(errs)); i < len(errs) {
			return errs[i]
		}
		return nil
	})
	p := s.start()
	all := s.callers(p, callers, rounds, func(int) bool { return true })
	s.verify(p, all...)
	if !s.sub.hasDestination() {
		for _, t := range all {
			if t.err != nil {
				s.Errorf("request %d was refused: %v", t.request.number, t.err)
			}
		}
	}
}

// checkContext ends the context of a call that waits for the destination. Without a destination it
// makes a call whose context has ended.
func checkContext(s *suite) {
	p := s.start()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := s.request()
	if !s.sub.hasDestination() {
		cancel()
		s.verify(p, outcome{r, s.sendWith(ctx, p, r)})
		return
	}
	s.destination.block()
	answer := make(chan error, 1)
	go func() { answer <- s.sendWith(ctx, p, r) }()
	if !s.destination.await(1, s.timeout) {
		s.Fatalf("the request was answered before it arrived at the destination")
	}
	cancel()
	if err := <-answer; err == nil {
		s.Errorf("the context ended before the spans were accepted, but the request was acknowledged")
	}
}
