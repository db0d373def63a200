package loadbalancing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/internal/otlpclient"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// backend is a connection to one backend.
type backend struct {
	address string
	client  *otlpclient.Client
	calls   sync.WaitGroup
	counts  spanCounts
	gone    bool // guarded by health.mu
}

func (b *backend) count(spans int, err error) {
	rejected, retry := outcome(spans, err)
	if retry {
		b.counts.failed.Add(float64(spans))
		return
	}
	b.counts.rejected.Add(float64(rejected))
	b.counts.sent.Add(float64(spans - rejected))
}

// table is the list of backends at one moment, sorted by address. It is immutable.
type table struct {
	ring     ring
	backends []*backend
}

func (t *table) release() {
	for _, b := range t.backends {
		b.calls.Done()
	}
}

// backends holds the connections to the current backends.
type backends struct {
	set     pipeline.Settings
	config  otlpConfig
	metrics *metrics
	health  *health

	mu      sync.Mutex
	current table
	closing sync.WaitGroup // connections of removed backends
}

// acquire returns the current table. Its connections stay open until it is released.
func (s *backends) acquire() *table {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.current
	for _, b := range t.backends {
		b.calls.Add(1)
	}
	return &t
}

// update replaces the backends by those with the given addresses and reports whether any changed.
// Only one goroutine may call it at a time. If it fails, the backends are unchanged.
func (s *backends) update(ctx context.Context, addresses []string) (changed bool, err error) {
	addresses = slices.Compact(slices.Sorted(slices.Values(addresses)))
	old := s.current.backends
	known := map[string]*backend{}
	for _, b := range old {
		known[b.address] = b
	}
	next := table{ring: newRing(addresses)}
	var opened []*backend
	for _, address := range addresses {
		b := known[address]
		if b == nil {
			if b, err = s.open(ctx, address); err != nil {
				return false, errors.Join(err, s.discard(ctx, opened))
			}
			opened = append(opened, b)
		}
		delete(known, address)
		next.backends = append(next.backends, b)
	}
	if len(opened) == 0 && len(known) == 0 {
		return false, nil
	}
	s.mu.Lock()
	s.current = next
	s.mu.Unlock()
	s.remove(known)
	s.metrics.backends.Set(float64(len(addresses)))
	s.health.setTotal(len(addresses))
	return true, nil
}

// open starts connecting to a backend.
func (s *backends) open(ctx context.Context, address string) (*backend, error) {
	b := &backend{address: address}
	set := s.set
	set.Logger = set.Logger.With(zap.String("backend", address))
	set.Report = func(err error) { s.health.setBackend(b, err) }
	var err error
	b.client, err = otlpclient.New(set, client.GRPCConfig{Endpoint: address, GRPCSettings: s.config.GRPCSettings}, s.config.NextHopConfig)
	if err == nil {
		err = b.client.Start(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", address, err)
	}
	b.counts = s.metrics.of(address)
	return b, nil
}

// discard closes the connections of backends that were in no table.
func (s *backends) discard(ctx context.Context, opened []*backend) error {
	var errs []error
	for _, b := range opened {
		s.health.forget(b)
		s.metrics.forget(b.address)
		errs = append(errs, b.client.Stop(ctx))
	}
	return errors.Join(errs...)
}

// remove closes the connections of backends that are no longer in any table, after their calls have
// ended.
func (s *backends) remove(gone map[string]*backend) {
	for _, b := range gone {
		s.health.forget(b)
		s.metrics.forget(b.address)
		s.closing.Go(func() {
			b.calls.Wait()
			if err := b.client.Stop(context.Background()); err != nil {
				s.set.Logger.Warn("cannot close connection to a removed backend", zap.Error(err))
			}
		})
	}
}

// stop removes all backends and waits until their connections are closed or ctx ends.
func (s *backends) stop(ctx context.Context) error {
	if _, err := s.update(ctx, nil); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.closing.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("calls to backends have not ended: %w", ctx.Err())
	}
}
