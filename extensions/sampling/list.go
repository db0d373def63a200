package sampling

import (
	"cmp"
	"context"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// lister is a source that knows which services have their own strategy.
type lister interface {
	// entries returns the services of a tenant and the entry of all others.
	entries(tenant string) (services map[string]decision, other decision)
}

// List implements sampling.Lister. Without a table, as with `remote`, it returns the services that
// clients have asked for, with the latest strategies from the collector.
func (e *extension) List(_ context.Context, tenant string, limit int) (*sampling.Overview, error) {
	limit = max(1, min(limit, sampling.MaxListed))
	out := &sampling.Overview{Services: []sampling.ServiceStrategy{}}
	services, other := map[string]decision{}, decision{entry: &entry{rule: "the collector decides"}, source: "remote"}
	switch s := e.source.(type) {
	case lister:
		services, other = s.entries(tenant)
	case *remoteSource:
		other.entry.place = s.cfg.Endpoint
	}
	out.Default = strategyOf("", other)
	for name, d := range services {
		out.Services = append(out.Services, strategyOf(name, d))
	}
	for _, name := range e.clients.names(tenant) {
		if _, own := services[name]; !own {
			out.Services = append(out.Services, strategyOf(name, other))
		}
	}
	slices.SortFunc(out.Services, func(a, b sampling.ServiceStrategy) int { return cmp.Compare(a.Service, b.Service) })
	out.Omitted = max(len(out.Services)-limit, 0)
	out.Services = out.Services[:len(out.Services)-out.Omitted]
	for i := range out.Services {
		s := &out.Services[i]
		d, own := services[s.Service]
		if !own {
			d = other
		}
		if clients := e.clients.of(tenant, s.Service, d.entry.strategy); len(clients) > 0 {
			s.Clients, s.Last = len(clients), &clients[0]
		}
	}
	if a, ok := e.source.(*adaptiveSource); ok {
		out.Adaptive = a.overview(tenant, limit)
	}
	return out, nil
}

func strategyOf(service string, d decision) sampling.ServiceStrategy {
	s := sampling.ServiceStrategy{Service: service, Origin: d.origin()}
	if d.entry.strategy == nil {
		return s
	}
	s.Sampler = d.entry.strategy.Sampler("")
	if o := d.entry.strategy.Operations; o != nil {
		s.Operations = len(o.PerOperation)
	}
	return s
}

// entries implements lister. Tenants share the strategies of a file.
func (s *fileSource) entries(string) (map[string]decision, decision) {
	state := s.state.Load()
	services := make(map[string]decision, len(state.table.services))
	for name, e := range state.table.services {
		services[name] = s.decision(state, e)
	}
	return services, s.decision(state, state.table.other)
}

// entries implements lister.
func (s *adaptiveSource) entries(tenant string) (map[string]decision, decision) {
	state := s.state.Load()
	services := map[string]decision{}
	for key, e := range state.table {
		if key.tenant == tenant {
			services[key.service] = decision{entry: e, source: sourceAdaptive, problem: state.problem}
		}
	}
	return services, decision{entry: state.other, source: sourceAdaptive, problem: state.problem}
}

// names returns the services of a tenant that clients have asked for, in any order.
func (c *recentClients) names(tenant string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for key := range c.services {
		if key.tenant == tenant {
			out = append(out, key.service)
		}
	}
	return out
}
