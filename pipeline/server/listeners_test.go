package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// fakeListener is a listener with preset results.
type fakeListener struct {
	addr              string
	startErr, stopErr error
	started, stopped  int
	handed            int
	logs              zapcore.Core
}

func (s *fakeListener) Start(context.Context) error { s.started++; return s.startErr }
func (s *fakeListener) Transport() string           { return "fake" }
func (s *fakeListener) HandOver(context.Context)    { s.handed++ }
func (s *fakeListener) Stop(context.Context) error  { s.stopped++; return s.stopErr }
func (s *fakeListener) Addr() string                { return s.addr }
func (s *fakeListener) Logger() *zap.Logger         { return zap.New(s.logs) }

// If one listener cannot start, those that have started are stopped.
func TestListenersStartAllOrNone(t *testing.T) {
	startErr, stopErr := errors.New("start failed"), errors.New("stop failed")
	for range 20 { // map order is random
		good, bad := &fakeListener{stopErr: stopErr}, &fakeListener{startErr: startErr}
		err := Listeners{"a": good, "b": bad}.Start(t.Context())
		if !errors.Is(err, startErr) || bad.stopped != 0 || good.stopped != good.started || errors.Is(err, stopErr) != (good.started == 1) {
			t.Fatalf("%v; good listener: %d starts, %d stops; bad listener: %d stops", err, good.started, good.stopped, bad.stopped)
		}
	}
}

func TestListenersStopAll(t *testing.T) {
	broken := errors.New("broken")
	a, b := &fakeListener{addr: "1", stopErr: broken}, &fakeListener{addr: "2"}
	g := Listeners{"a": a, "b": b}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g.Addr("a") != "1" || g.Addr("b") != "2" || g.Addr("c") != "" {
		t.Errorf("addresses %q %q %q", g.Addr("a"), g.Addr("b"), g.Addr("c"))
	}
	g.HandOver(t.Context())
	if a.handed != 1 || b.handed != 1 {
		t.Errorf("handed over: %d and %d", a.handed, b.handed)
	}
	if err := g.Stop(t.Context()); !errors.Is(err, broken) || a.stopped != 1 || b.stopped != 1 {
		t.Errorf("%v; stops: %d and %d", err, a.stopped, b.stopped)
	}
}

// panickingListener panics when it is stopped or replaced.
type panickingListener struct{ fakeListener }

func (s *panickingListener) HandOver(context.Context)   { panic("hands over") }
func (s *panickingListener) Stop(context.Context) error { panic("stops") }

// A panic of a listener does not end the process: callers recover from it. Other listeners stop.
func TestListenersPanic(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	good := &fakeListener{}
	ls := Listeners{"good": good, "bad": &panickingListener{fakeListener{logs: core}}}
	if err := ls.Stop(t.Context()); err == nil || err.Error() != "listener bad panicked: stops; please report this bug" || good.stopped != 1 {
		t.Errorf("%v; %d stops", err, good.stopped)
	}
	defer func() {
		if p := fmt.Sprint(recover()); p != "listener bad panicked: hands over; please report this bug" || good.handed != 1 {
			t.Errorf("%s; handed over: %d", p, good.handed)
		}
	}()
	for _, e := range logs.FilterMessage("BUG: listener panicked").All() {
		c := e.ContextMap()
		if c["listener"] != "bad" || c["panic"] != "stops" || !strings.Contains(fmt.Sprint(c["stack"]), "panickingListener") {
			t.Errorf("logged %v", c)
		}
	}
	if logs.Len() != 1 {
		t.Errorf("%d log entries", logs.Len())
	}
	ls.HandOver(t.Context())
}
