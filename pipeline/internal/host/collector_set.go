package host

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// collectorSet holds the metric collectors of one component. It is a prometheus.Registerer that
// registers them in several registries: the registry of the running graph, and the registry of a
// graph that is being built and will reuse the component.
type collectorSet struct {
	mu         sync.Mutex
	collectors []prometheus.Collector
	registries []*prometheus.Registry
}

// join registers all collectors, including later ones, in reg. If it fails, it registers none.
func (s *collectorSet) join(reg *prometheus.Registry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.collectors {
		if err := reg.Register(c); err != nil {
			for _, joined := range s.collectors[:i] {
				reg.Unregister(joined)
			}
			return err
		}
	}
	s.registries = append(s.registries, reg)
	return nil
}

// leave forgets reg, which is no longer used.
func (s *collectorSet) leave(reg *prometheus.Registry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registries = slices.DeleteFunc(s.registries, func(other *prometheus.Registry) bool { return other == reg })
}

// keepOnly forgets all registries but reg.
func (s *collectorSet) keepOnly(reg *prometheus.Registry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registries = slices.DeleteFunc(s.registries, func(other *prometheus.Registry) bool { return other != reg })
}

// Register registers c in all registries, or in none if it fails.
func (s *collectorSet) Register(c prometheus.Collector) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, reg := range s.registries {
		if err := reg.Register(c); err != nil {
			for _, other := range s.registries[:i] {
				other.Unregister(c)
			}
			return err
		}
	}
	s.collectors = append(s.collectors, c)
	return nil
}

// MustRegister registers collectors and panics if one cannot be registered.
func (s *collectorSet) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := s.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister removes c from all registries and reports whether it was registered.
func (s *collectorSet) Unregister(c prometheus.Collector) (found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, reg := range s.registries {
		found = reg.Unregister(c) || found
	}
	s.collectors = slices.DeleteFunc(s.collectors, func(other prometheus.Collector) bool { return sameMetrics(c, other) })
	return found
}

// sameMetrics reports whether two collectors describe the same metrics. A registry treats such
// collectors as the same.
func sameMetrics(a, b prometheus.Collector) bool {
	descsA, descsB := descs(a), descs(b)
	return len(descsA) == len(descsB) && !slices.ContainsFunc(descsA, func(d string) bool { return !slices.Contains(descsB, d) })
}

func descs(c prometheus.Collector) (texts []string) {
	ch := make(chan *prometheus.Desc)
	var panicked any // of the component's code, for the recover of its caller
	go func() {
		defer close(ch)
		defer func() { panicked = recover() }()
		c.Describe(ch)
	}()
	for d := range ch {
		texts = append(texts, d.String())
	}
	if panicked != nil {
		panic(panicked)
	}
	return texts
}
