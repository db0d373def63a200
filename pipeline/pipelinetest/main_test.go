package pipelinetest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// caught runs one check for a faulty component and returns the failures.
func caught(t *testing.T, name string, sub *subject) []string {
	t.Helper()
	for _, c := range checks() {
		if c.name != name {
			continue
		}
		if c.on != nil && !c.on(sub) {
			t.Fatalf("the check %q does not apply", name)
		}
		r := &recorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer r.cleanUp()
			s := newSuite(r, sub)
			s.timeout = time.Second
			c.run(s)
		}()
		<-done
		return r.messages
	}
	t.Fatalf("no check %q", name)
	return nil
}

// recorder is a testing.TB that records failures. The test calls cleanUp.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	messages []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) cleanUp() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}

// expect runs a check for a faulty component, and checks that a failure contains want.
func expect(t *testing.T, check string, sub *subject, want string) {
	t.Helper()
	got := caught(t, check, sub)
	if !slices.ContainsFunc(got, func(m string) bool { return strings.Contains(m, want) }) {
		t.Errorf("check %q: failures %q, want one with %q", check, got, want)
	}
}
