package server

import (
	"context"
	"errors"
	"sync"

	"github.com/tracing-backend/tracing/pipeline"
)

// Listener is a server of any protocol.
type Listener interface {
	pipeline.Starter
	pipeline.Stopper
	Addr() string
}

// Group is the listeners of one component, by the names by which it is asked for their addresses.
type Group map[string]Listener

var (
	_ pipeline.Starter   = Group(nil)
	_ pipeline.Stopper   = Group(nil)
	_ pipeline.Addressed = Group(nil)
)

// Start opens all listeners, or none.
func (g Group) Start(ctx context.Context) error {
	started := Group{}
	for name, l := range g {
		if err := l.Start(ctx); err != nil {
			return errors.Join(err, started.Stop(ctx))
		}
		started[name] = l
	}
	return nil
}

// Stop drains all listeners at once.
func (g Group) Stop(ctx context.Context) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	for _, l := range g {
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

// Addr returns the address of a listener, or "" where there is none of that name.
func (g Group) Addr(name string) string {
	if l, ok := g[name]; ok {
		return l.Addr()
	}
	return ""
}
