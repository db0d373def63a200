package pipelinetest

import (
	"errors"

	"github.com/tracing-backend/tracing/pipeline"
)

// checkPartial rejects some spans of each request permanently and accepts the others, which a retry
// would duplicate.
func checkPartial(s *suite) {
	p := s.start()
	all := []form{{}}
	if s.sub.isConsumer() {
		all = forms()
	}
	spans := spansPerRequest
	for _, f := range all {
		for _, rejected := range []int{1, spans - 1} {
			if rejected > 0 {
				s.partial(p, s.requestOf(f, spans), rejected)
			}
		}
	}
	s.destination.always(nil)
	r := s.request()
	err := s.send(p, r)
	if err != nil {
		s.Errorf("%s after rejected spans was refused: %v", r, err)
	}
	s.verify(p, outcome{r, err})
}

// partial rejects spans of each call for a request.
func (s *suite) partial(p *program, r request, rejected int) {
	s.Helper()
	s.destination.always(&pipeline.Partial{Rejected: rejected, Err: errors.New("invalid span")})
	err := s.send(p, r)
	if errors.Is(err, errHung) {
		return
	}
	arrived, refused := s.arrivals(p), 0
	for _, name := range r.names {
		a := arrived[name]
		wasRefused := s.destination.refusal(name) != nil
		if wasRefused {
			refused++
		}
		switch {
		case len(a) > 1 || len(a) == 1 && wasRefused:
			s.Errorf("%s: %d spans were rejected, and %s was resent", r, rejected, name)
			return
		case len(a) == 0 && !wasRefused:
			s.Errorf("%s: %d spans were rejected, and %s did not arrive", r, rejected, name)
			return
		}
	}
	s.partialAnswer(r, err, refused)
}

// partialAnswer checks the outcome of a request in which the given number of spans was rejected.
func (s *suite) partialAnswer(r request, err error, refused int) {
	s.Helper()
	switch got := partialOf(err); {
	case s.sub.partial && (got == nil || got.Rejected != refused):
		s.Errorf("%s: %d spans were rejected, but the sender got: %v", r, refused, err)
	case err != nil && got == nil && !pipeline.IsPermanent(err):
		s.Errorf("%s: some spans were accepted, but the sender would resend all of them: %v", r, err)
	}
}
