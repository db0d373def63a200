package pipelinetest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/goleak"
)

// checkBuild builds without starting, as `validate` does on machines where the program does not run.
func checkBuild(s *suite) {
	block, dir := s.config()
	running := goleak.IgnoreCurrent()
	before := openFiles()
	p := s.build(block, dir)
	for _, f := range openFiles() {
		if !slices.Contains(before, f) {
			s.Errorf("building opened %s; do that in Start", f)
		}
	}
	for _, e := range p.effects.noted() {
		s.Errorf("building %s; do that in Start", e)
	}
	if _, err := os.Stat(dir); err == nil {
		s.Errorf("building made files in the component's folder; do that in Start")
	}
	if err := goleak.Find(running); err != nil {
		s.Errorf("building started a goroutine; do that in Start: %v", err)
	}
}

// openFiles returns the files and sockets that the process has open, where the operating system tells.
func openFiles() []string {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var open []string
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil || strings.HasPrefix(target, "/proc/") {
			continue // closed again, or the listing itself
		}
		if strings.HasPrefix(target, "/") || strings.HasPrefix(target, "socket:") {
			open = append(open, target)
		}
	}
	return open
}

// checkLifecycle starts and stops without a single span, and again with what the first run left.
func checkLifecycle(s *suite) {
	block, dir := s.config()
	for range 2 {
		p := s.build(block, dir)
		p.start()
		p.stop()
	}
}

// checkLeaks looks for goroutines that outlive Stop.
func checkLeaks(s *suite) {
	block, dir := s.config()
	running := goleak.IgnoreCurrent()
	p := s.build(block, dir)
	p.start()
	for range 3 {
		if err := s.send(p, s.request()); err != nil {
			s.Errorf("the spans were refused: %v", err)
		}
	}
	p.stop()
	if err := goleak.Find(running); err != nil {
		s.Errorf("after Stop: %v", err)
	}
}

// checkStopUnderLoad stops while callers send: each gets an answer, and a yes is kept.
func checkStopUnderLoad(s *suite) {
	const callers, enough, most = 8, 64, 1 << 20
	p := s.start()
	loaded, stopped := make(chan struct{}), make(chan struct{})
	var all []told
	go func() {
		defer close(stopped)
		select {
		case <-loaded:
		case <-time.After(s.patience): // the callers hang, and say so
		}
		p.stop()
	}()
	all = s.callers(p, callers, most, func(done int) bool {
		if done == enough {
			close(loaded)
		}
		select {
		case <-stopped:
			return false
		default:
			return true
		}
	})
	<-stopped
	if s.sub.tellsAnswers() {
		s.truth(p, all...)
	}
	if !slices.ContainsFunc(all, func(t told) bool { return t.err == nil }) {
		s.Errorf("all of %d requests were refused, also before Stop; the first: %v", len(all), all[0].err)
	}
}

// cutOffWithin is how long the sender of a call that is cut off waits for its answer at most.
const cutOffWithin = 200 * time.Millisecond

// checkStopDeadline stops while a call hangs behind the component, with a deadline that is over.
func checkStopDeadline(s *suite) {
	p := s.start()
	s.ledger.block()
	answer := make(chan told, 1)
	r := s.request()
	go func() { answer <- told{r, s.send(p, r)} }()
	if !s.ledger.await(1, s.patience) {
		s.Fatalf("a request did not arrive behind the component before its sender was answered")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.stopWithin(ctx); err == nil {
		s.Errorf("Stop cut off a call when its context ended, and returned nil")
	}
	var t told
	select {
	case t = <-answer:
		s.ledger.awaitEnd(1, s.patience) // over a network it takes a moment until the call knows; before that it must not be answered
		s.ledger.release()
	case <-time.After(cutOffWithin): // it is not cut off
		s.ledger.release()
		t = <-answer
	}
	if s.sub.tellsAnswers() {
		s.truth(p, t)
	}
}
