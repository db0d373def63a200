package sampling

import (
	"container/list"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

const (
	// clientsPerService is the maximum number of clients remembered for each service.
	clientsPerService = 8
	// maxRemembered is the maximum length of a remembered name or error, in bytes.
	maxRemembered = 200
)

// recentClients remembers the latest clients of the most recently requested services. It is safe
// for concurrent use.
type recentClients struct {
	maxServices int
	seed        maphash.Seed

	mu       sync.Mutex
	services map[serviceKey]*list.Element // of *serviceClients
	recent   list.List                    // the latest first
}

// serviceKey identifies a service of a tenant.
type serviceKey struct{ tenant, service string }

// serviceClients holds the recent clients of a service.
type serviceClients struct {
	serviceKey
	clients []clientRecord // the latest first, each client once
}

// clientRecord is the last request of a client.
type clientRecord struct {
	sampling.ServedRequest
	sum uint64 // see [recentClients.sum]; 0 if the response was an error
}

func newRecentClients(maxServices int) *recentClients {
	return &recentClients{maxServices: maxServices, seed: maphash.MakeSeed(), services: map[serviceKey]*list.Element{}}
}

// sum returns a hash that is equal for equal strategies. The sum of nil, which stands for an error,
// is 0.
func (c *recentClients) sum(s *sampling.Strategy) uint64 {
	if s == nil {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(c.seed)
	add(&h, s.Type)
	addOptional(&h, s.Probability)
	addOptional(&h, s.Limit)
	if o := s.Operations; o != nil {
		add(&h, [...]float64{o.Default, o.LowerBound, o.UpperBound})
		for _, e := range o.PerOperation {
			add(&h, e)
		}
	}
	return max(1, h.Sum64())
}

func add[T comparable](h *maphash.Hash, v T) { maphash.WriteComparable(h, v) }

func addOptional[T comparable](h *maphash.Hash, v *T) {
	if add(h, v != nil); v != nil {
		add(h, *v)
	}
}

// remember records a request and its response, which is a strategy or an error.
func (c *recentClients) remember(r sampling.Request, now time.Time, strategy *sampling.Strategy, err error) {
	if c.maxServices == 0 || r.Client == (sampling.Client{}) || len(r.Tenant)+len(r.Service) > 2*maxRemembered {
		return
	}
	r.Client.UserAgent, r.Client.Address = short(r.Client.UserAgent), short(r.Client.Address)
	next := clientRecord{ServedRequest: sampling.ServedRequest{Client: r.Client, At: now}}
	if err != nil {
		next.Answer, next.Failed = short("error: "+err.Error()), true
	} else {
		next.Answer, next.sum = short(strategy.String()), c.sum(strategy)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := serviceKey{r.Tenant, r.Service}
	e, ok := c.services[key]
	if ok {
		c.recent.MoveToFront(e)
	} else {
		e = c.recent.PushFront(&serviceClients{serviceKey: key})
		c.services[key] = e
	}
	s := e.Value.(*serviceClients)
	s.clients = slices.DeleteFunc(s.clients, func(o clientRecord) bool {
		if o.Client != r.Client {
			return false
		}
		if next.Failed {
			if next.Previous = o.Answer; o.Failed {
				next.Previous = o.Previous
			}
		}
		return true
	})
	s.clients = slices.Insert(s.clients, 0, next)
	s.clients = s.clients[:min(len(s.clients), clientsPerService)]
	if len(c.services) > c.maxServices {
		oldest := c.recent.Remove(c.recent.Back()).(*serviceClients)
		delete(c.services, oldest.serviceKey)
	}
}

// of returns the recent clients of a service, the latest first. current is the current strategy of
// the service.
func (c *recentClients) of(tenant, service string, current *sampling.Strategy) []sampling.ServedRequest {
	sum := c.sum(current)
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []sampling.ServedRequest{}
	e, ok := c.services[serviceKey{tenant, service}]
	if !ok {
		return out
	}
	for _, r := range e.Value.(*serviceClients).clients {
		r.Current = r.sum != 0 && r.sum == sum
		out = append(out, r.ServedRequest)
	}
	return out
}

// short returns a copy of s, truncated to maxRemembered bytes.
func short(s string) string {
	return strings.Clone(strings.ToValidUTF8(s[:min(len(s), maxRemembered)], "\uFFFD"))
}
