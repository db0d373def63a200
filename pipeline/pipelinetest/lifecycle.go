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

// checkBuild builds the component without starting it, as `tracing validate` does.
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
		s.Errorf("building wrote to the folder of the component; do that in Start")
	}
	if err := goleak.Find(running); err != nil {
		s.Errorf("building started a goroutine; do that in Start: %v", err)
	}
}

// openFiles returns the open files and sockets of the process, or nil if the system has no /proc.
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
			continue // the file is closed, or it is the directory itself
		}
		if strings.HasPrefix(target, "/") || strings.HasPrefix(target, "socket:") {
			open = append(open, target)
		}
	}
	return open
}

// checkLifecycle starts and stops the component without spans, twice with the same folder.
func checkLifecycle(s *suite) {
	block, dir := s.config()
	for range 2 {
		p := s.build(block, dir)
		p.start()
		p.stop()
	}
}

// checkLeaks checks that no goroutine is left after Stop.
func checkLeaks(s *suite) {
	block, dir := s.config()
	running := goleak.IgnoreCurrent()
	p := s.build(block, dir)
	p.start()
	for range 3 {
		if err := s.send(p, s.request()); err != nil {
			s.Errorf("the request was refused: %v", err)
		}
	}
	p.stop()
	if err := goleak.Find(running); err != nil {
		s.Errorf("after Stop: %v", err)
	}
}

// checkStopUnderLoad stops the component while callers send. Every call must return, and
// acknowledged spans must have arrived.
func checkStopUnderLoad(s *suite) {
	const callers, enough, maxRounds = 8, 64, 1 << 20
	p := s.start()
	loaded, stopped := make(chan struct{}), make(chan struct{})
	var all []outcome
	go func() {
		defer close(stopped)
		select {
		case <-loaded:
		case <-time.After(s.timeout): // the callers hang and report it
		}
		p.stop()
	}()
	all = s.callers(p, callers, maxRounds, func(done int) bool {
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
	if s.sub.passesAnswersOn() {
		s.verify(p, all...)
	}
	if !slices.ContainsFunc(all, func(o outcome) bool { return o.err == nil }) {
		s.Errorf("all %d requests were refused, some of them before Stop; the first: %v", len(all), all[0].err)
	}
}

// A canceled call must return within cancelTimeout, which is divided into cancelSteps waits so that
// a pause of the machine is not taken for it.
const cancelTimeout, cancelSteps = 200 * time.Millisecond, 20

// checkStopDeadline stops the component with an expired deadline while a call waits for the
// destination.
func checkStopDeadline(s *suite) {
	s.destination.block() // before the start: a receiver may first pass on what an earlier check has left in its source
	p := s.start()
	answer := make(chan outcome, 1)
	r := s.request()
	go func() { answer <- outcome{r, s.send(p, r)} }()
	if !s.destination.await(1, s.timeout) {
		s.Fatalf("the request was answered before it arrived at the destination")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.stopWithin(ctx); err == nil {
		s.Errorf("Stop returned nil, although its context ended while a call was waiting")
	}
	var o outcome
	canceled := false
	for step := 0; step < cancelSteps && !canceled; step++ {
		select {
		case o = <-answer:
			canceled = true
		case <-time.After(cancelTimeout / cancelSteps):
		}
	}
	if canceled {
		// Over a network, the call ends a moment later. Until then it must not get a response.
		s.destination.awaitEnd(1, s.timeout)
	}
	s.destination.release()
	if !canceled {
		o = <-answer
	}
	if s.sub.passesAnswersOn() {
		s.verify(p, o)
	}
}
