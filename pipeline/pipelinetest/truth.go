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

// errHung is the outcome of what did not come to an end. It has been reported.
var errHung = errors.New("no answer")

// within runs f, and reports it as hung when it has not returned after the suite's patience.
func (s *suite) within(what string, f func() error) error {
	s.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	late := time.NewTimer(s.patience)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		s.Errorf("%s did not return after %s", what, s.patience)
		return errHung
	}
}

// send gives the component one request and returns what the sender is told.
func (s *suite) send(p *program, r request) error {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	return s.sendWith(ctx, p, r)
}

func (s *suite) sendWith(ctx context.Context, p *program, r request) error {
	s.Helper()
	if s.sub.called() {
		b := s.batch(r)
		return s.within("Consume", func() error { return p.source.Consume(ctx, b) })
	}
	id := pipeline.ID{Type: s.sub.factory.Type()}
	addr := p.app.Addr(id, s.sub.listener)
	return s.within("sending", func() error { return s.sub.send(ctx, addr, r.traces) })
}

// told is what the sender of a request was told.
type told struct {
	request request
	err     error
}

// callers sends from many goroutines until each has sent rounds requests, or more returns false.
func (s *suite) callers(p *program, callers, rounds int, more func(done int) bool) []told {
	var (
		all     []told
		mu      sync.Mutex
		sending sync.WaitGroup
	)
	for range callers {
		sending.Go(func() {
			for range rounds {
				r := s.request()
				t := told{r, s.send(p, r)}
				mu.Lock()
				all = append(all, t)
				n := len(all)
				mu.Unlock()
				if !more(n) {
					return
				}
			}
		})
	}
	sending.Wait()
	return all
}

// arrivals returns how often each span arrived behind the component.
func (s *suite) arrivals(p *program) map[string]int {
	s.Helper()
	if s.sub.read == nil {
		taken, err := s.ledger.arrivals()
		if err != nil {
			s.Errorf("a batch that was passed on cannot be read: %v", err)
		}
		return taken
	}
	taken := map[string]int{}
	batches, err := s.sub.read(p.exporter)
	if err != nil {
		s.Fatalf("reading what is stored: %v", err)
	}
	for _, b := range batches {
		names, err := namesIn(b)
		if err != nil {
			s.Fatalf("reading what is stored: %v", err)
		}
		for _, n := range names {
			taken[n]++
		}
	}
	return taken
}

// truth compares what senders were told with what became of their spans, and reports the first lie of each.
func (s *suite) truth(p *program, all ...told) {
	s.Helper()
	if s.sub.forgets {
		return
	}
	taken := s.arrivals(p)
	for _, t := range all {
		if lie := s.lie(t, taken); lie != "" {
			s.Errorf("request %d: %s", t.request.number, lie)
		}
	}
}

func (s *suite) lie(t told, taken map[string]int) string {
	if errors.Is(t.err, errHung) {
		return ""
	}
	for _, name := range t.request.names {
		n := taken[name]
		switch {
		case t.err == nil && n == 0:
			return fmt.Sprintf("the sender was told yes, but %s did not arrive", name)
		case t.err == nil && n > 1:
			return fmt.Sprintf("%s was sent once and arrived %d times", name, n)
		case t.err != nil && n > 0:
			return fmt.Sprintf("the sender was told no (%v), but %s was taken, and would be sent again", t.err, name)
		}
	}
	return s.mislabelled(t.err, s.ledger.refusal(t.request.names[0]))
}

// mislabelled says how the class of an error that a sender was told differs from that of the refusal behind the component. A processor
// hands the class on unchanged; what goes over a network keeps at least the difference between never and later.
func (s *suite) mislabelled(got, refusal error) string {
	if got == nil || refusal == nil {
		return ""
	}
	if s.sub.factory.Kind() != pipeline.KindProcessor {
		if g, w := pipeline.IsPermanent(got), pipeline.IsPermanent(refusal); g != w {
			return fmt.Sprintf("the refusal %q is %s, and was told as %s: %v", refusal, permanence(w), permanence(g), got)
		}
		return ""
	}
	if g, w := classOf(got), classOf(refusal); g != w {
		return fmt.Sprintf("the refusal %q is %s, and was told as %s: %v", refusal, w, g, got)
	}
	return ""
}

func permanence(permanent bool) string {
	if permanent {
		return "permanent"
	}
	return "to be tried again"
}

// classOf describes the class of an error by the answers it leads to.
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

// refusals are errors of every class: for good, for now, and those of a next hop.
func refusals() []error {
	return []error{
		pipeline.Permanent(errors.New("nobody will ever take this")),
		pipeline.Overloaded(errors.New("too much at once"), 7*time.Second),
		errors.New("down for the moment"),
		fmt.Errorf("next hop: %w", status.Error(codes.Unavailable, "down for the moment")),
		fmt.Errorf("next hop: %w", status.Error(codes.InvalidArgument, "nobody will ever take this")),
	}
}
