package pipeline

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// registration is what one component has registered of metrics. It is shown by the registries that it has joined: that of the graph which
// runs, and of one that is being built and will keep the component.
type registration struct {
	mu         sync.Mutex
	collectors []prometheus.Collector
	registries []*prometheus.Registry
}

// join makes everything that is or will be registered part of a registry, or nothing of it.
func (r *registration) join(reg *prometheus.Registry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range r.collectors {
		if err := reg.Register(c); err != nil {
			for _, joined := range r.collectors[:i] {
				reg.Unregister(joined)
			}
			return err
		}
	}
	r.registries = append(r.registries, reg)
	return nil
}

// quit leaves a registry, which nobody shows any more.
func (r *registration) quit(reg *prometheus.Registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.registries = slices.DeleteFunc(r.registries, func(other *prometheus.Registry) bool { return other == reg })
}

// only leaves all registries but one.
func (r *registration) only(reg *prometheus.Registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.registries = slices.DeleteFunc(r.registries, func(other *prometheus.Registry) bool { return other != reg })
}

// Register adds a collector to all registries that were joined, or to none.
func (r *registration) Register(c prometheus.Collector) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, reg := range r.registries {
		if err := reg.Register(c); err != nil {
			for _, other := range r.registries[:i] {
				other.Unregister(c)
			}
			return err
		}
	}
	r.collectors = append(r.collectors, c)
	return nil
}

// MustRegister adds collectors and panics when one cannot be.
func (r *registration) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister takes a collector out, and reports whether it was there.
func (r *registration) Unregister(c prometheus.Collector) (found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reg := range r.registries {
		found = reg.Unregister(c) || found
	}
	r.collectors = slices.DeleteFunc(r.collectors, func(other prometheus.Collector) bool { return sameMetrics(c, other) })
	return found
}

// sameMetrics reports whether two collectors describe the same metrics, which is when a registry takes one for the other.
func sameMetrics(a, b prometheus.Collector) bool {
	of, other := descs(a), descs(b)
	return len(of) == len(other) && !slices.ContainsFunc(of, func(d string) bool { return !slices.Contains(other, d) })
}

func descs(c prometheus.Collector) (texts []string) {
	ch := make(chan *prometheus.Desc)
	go func() {
		c.Describe(ch)
		close(ch)
	}()
	for d := range ch {
		texts = append(texts, d.String())
	}
	return texts
}
