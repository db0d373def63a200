package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// Listener is a server of any protocol.
type Listener interface {
	pipeline.Starter
	pipeline.Stopper
	pipeline.Replaceable
	Addr() string
	// Transport returns `grpc`, `http` or `udp`.
	Transport() string
	// Logger returns the logger of the component.
	Logger() *zap.Logger
}

// Transports of the listeners of this package.
const (
	transportGRPC = "grpc"
	transportHTTP = "http"
)

// Listeners are the listeners of one component by name. Components embed it to start and stop their
// listeners and to report their addresses.
type Listeners map[string]Listener

var (
	_ pipeline.Starter     = Listeners(nil)
	_ pipeline.Stopper     = Listeners(nil)
	_ pipeline.Replaceable = Listeners(nil)
	_ pipeline.Addressed   = Listeners(nil)
	_ pipeline.Listening   = Listeners(nil)
)

// Start starts all listeners. If one fails, it stops those that have started.
func (ls Listeners) Start(ctx context.Context) error {
	started := Listeners{}
	for name, l := range ls {
		if err := l.Start(ctx); err != nil {
			return errors.Join(err, started.Stop(ctx))
		}
		started[name] = l
	}
	return nil
}

// HandOver calls HandOver of all listeners concurrently. If one panics, it panics after the others
// have finished.
func (ls Listeners) HandOver(ctx context.Context) {
	err := ls.each(func(l Listener) error {
		l.HandOver(ctx)
		return nil
	})
	if err != nil {
		panic(err)
	}
}

// Stop drains all listeners concurrently. A panic is returned as an error.
func (ls Listeners) Stop(ctx context.Context) error {
	return ls.each(func(l Listener) error { return l.Stop(ctx) })
}

// each calls f for all listeners concurrently and joins the errors. A panic of f becomes an error.
func (ls Listeners) each(f func(Listener) error) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	for name, l := range ls {
		wg.Go(func() {
			err := safely(name, l, f)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func safely(name string, l Listener, f func(Listener) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.Logger().Error("BUG: listener panicked", zap.String("listener", name), zap.Any("panic", p), zap.Stack("stack"))
			err = fmt.Errorf("listener %s panicked: %v; please report this bug", name, p)
		}
	}()
	return f(l)
}

// Addr returns the address of the named listener, or "" if there is no such listener.
func (ls Listeners) Addr(name string) string {
	if l, ok := ls[name]; ok {
		return l.Addr()
	}
	return ""
}

// OpenListeners returns the listeners that have an address.
func (ls Listeners) OpenListeners() (open []status.Listener) {
	for _, l := range ls {
		if addr := l.Addr(); addr != "" {
			open = append(open, status.Listener{Transport: l.Transport(), Address: addr})
		}
	}
	return open
}
