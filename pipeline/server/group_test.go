package server

import (
	"context"
	"errors"
	"testing"
)

// scripted is a listener that starts and stops as it is told.
type scripted struct {
	addr              string
	startErr, stopErr error
	started, stopped  int
}

func (s *scripted) Start(context.Context) error { s.started++; return s.startErr }
func (s *scripted) Stop(context.Context) error  { s.stopped++; return s.stopErr }
func (s *scripted) Addr() string                { return s.addr }

// When one listener cannot start, those that have are stopped, and only those.
func TestGroupStartsAllOrNone(t *testing.T) {
	taken, stuck := errors.New("taken"), errors.New("stuck")
	for range 20 { // in any order
		good, bad := &scripted{stopErr: stuck}, &scripted{startErr: taken}
		err := Group{"a": good, "b": bad}.Start(t.Context())
		if !errors.Is(err, taken) || bad.stopped != 0 || good.stopped != good.started || errors.Is(err, stuck) != (good.started == 1) {
			t.Fatalf("%v; the good one was started %d times, stopped %d; the bad one stopped %d", err, good.started, good.stopped, bad.stopped)
		}
	}
}

func TestGroupStopsAll(t *testing.T) {
	broken := errors.New("broken")
	a, b := &scripted{addr: "1", stopErr: broken}, &scripted{addr: "2"}
	g := Group{"a": a, "b": b}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g.Addr("a") != "1" || g.Addr("b") != "2" || g.Addr("c") != "" {
		t.Errorf("addresses %q %q %q", g.Addr("a"), g.Addr("b"), g.Addr("c"))
	}
	if err := g.Stop(t.Context()); !errors.Is(err, broken) || a.stopped != 1 || b.stopped != 1 {
		t.Errorf("%v; stopped %d and %d times", err, a.stopped, b.stopped)
	}
}
