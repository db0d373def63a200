package pipelinetest

import (
	"context"
	"math/rand/v2"

	"github.com/tracing-backend/tracing/pipeline"
)

// checkArrival sends requests one after the other. The spans of each must have arrived when it is
// acknowledged.
func checkArrival(s *suite) {
	p, want := s.start(), 0
	for range 12 {
		r := s.request()
		err := s.send(p, r)
		if err != nil {
			s.Errorf("the request was refused: %v", err)
		}
		s.verify(p, outcome{r, err})
		want += len(r.names)
	}
	s.origin()
	if s.sub.discards {
		return
	}
	if got := len(s.arrivals(p)); got != want {
		s.Errorf("%d distinct spans arrived, want %d", got, want)
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
			s.Errorf("sending %s: %v", t.request, t.err)
			return
		}
	}
	s.verify(p, all...)
	s.origin()
}

// origin checks the metadata of the batches that a receiver has made.
func (s *suite) origin() {
	s.Helper()
	if s.sub.factory.Kind() != pipeline.KindReceiver {
		return
	}
	for i, passed := range s.destination.passed() {
		meta := passed.batch.Meta()
		switch {
		case meta.Format == "":
			s.Errorf("batch %d: Meta.Format is empty; metrics need it as a label", i)
		case meta.Transport == "":
			s.Errorf("batch %d: Meta.Transport is empty; metrics need it as a label", i)
		case meta.Received.IsZero():
			s.Errorf("batch %d: Meta.Received is not set; use Settings.Env.Now", i)
		default:
			continue
		}
		return
	}
}

// checkJoined sends batches of several chunks and of many.
func checkJoined(s *suite) {
	const many = 100
	p := s.start()
	for _, f := range joinedForms() {
		for _, spans := range []int{1, 2, spansPerRequest, many} {
			r := s.requestOf(f, spans)
			err := s.send(p, r)
			if err != nil {
				s.Errorf("%s was refused: %v", r, err)
			}
			s.verify(p, outcome{r, err})
		}
	}
}

// checkEmpty sends requests without spans, as some clients do. They must be acknowledged, and
// nothing may arrive.
func checkEmpty(s *suite) {
	p := s.start()
	all := emptyForms()
	if !s.sub.isConsumer() {
		all = []form{{}}
	}
	for _, f := range all {
		r := s.requestOf(f, 0)
		switch err := s.send(p, r); {
		case err == nil, s.sub.factory.Kind() == pipeline.KindReceiver && pipeline.IsPermanent(err):
		default:
			s.Errorf("%s without spans: %v", r, err)
		}
	}
	if arrived := s.arrivals(p); !s.sub.discards && len(arrived) > 0 {
		s.Errorf("no spans were sent, but %d arrived", len(arrived))
	}
	r := s.request()
	err := s.send(p, r)
	if err != nil {
		s.Errorf("%s after a batch without spans was refused: %v", r, err)
	}
	s.verify(p, outcome{r, err})
}

// checkBatches checks that the component has modified neither the batches that it received nor the
// batches that it passed on.
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
}

// checkCallers returns random outcomes to concurrent callers.
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
				s.Errorf("%s was refused: %v", t.request, t.err)
			}
		}
	}
}

// checkContext ends the context of a call that waits for the destination. Without a destination, it
// makes a call whose context has already ended.
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
