package server

import (
	"context"
	"errors"
	"sync"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// Listener is a server of any protocol.
type Listener interface {
	pipeline.Starter
	pipeline.Stopper
	pipeline.Replaceable
	Addr() string
	// Transport returns `grpc`, `http`, `udp` or `tcp`.
	Transport() string
}

// Transports of the listeners of this package.
const (
	transportGRPC = "grpc"
	transportHTTP = "http"
	transportTCP  = "tcp"
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

// HandOver hands over all listeners concurrently.
func (ls Listeners) HandOver(ctx context.Context) {
	var wg sync.WaitGroup
	for _, l := range ls {
		wg.Go(func() { l.HandOver(ctx) })
	}
	wg.Wait()
}

// Stop drains all listeners concurrently.
func (ls Listeners) Stop(ctx context.Context) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	for _, l := range ls {
		wg.Go(func() {
			err := l.Stop(ctx)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
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
