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

type serviceClients struct {
	serviceKey
	by []clientRecord // the latest first, each client once
}

type clientRecord struct {
	sampling.ServedRequest
	sum uint64 // see [recentClients.sum]; 0 if the answer was an error
}

func newRecentClients(maxServices int) *recentClients {
	return &recentClients{maxServices: maxServices, seed: maphash.MakeSeed(), services: map[serviceKey]*list.Element{}}
}

// sum returns a hash that is equal for equal strategies. The sum of nil, which stands for an error,
// is 0.
func (a *recentClients) sum(s *sampling.Strategy) uint64 {
	if s == nil {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(a.seed)
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

// remember records a request and its answer, which is a strategy or an error.
func (a *recentClients) remember(r sampling.Request, now time.Time, strategy *sampling.Strategy, err error) {
	if a.maxServices == 0 || r.Client == (sampling.Client{}) || len(r.Tenant)+len(r.Service) > 2*maxRemembered {
		return
	}
	r.Client.UserAgent, r.Client.Address = short(r.Client.UserAgent), short(r.Client.Address)
	next := clientRecord{ServedRequest: sampling.ServedRequest{Client: r.Client, At: now}}
	if err != nil {
		next.Answer, next.Failed = short("error: "+err.Error()), true
	} else {
		next.Answer, next.sum = short(strategy.String()), a.sum(strategy)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := serviceKey{r.Tenant, r.Service}
	e, ok := a.services[key]
	if ok {
		a.recent.MoveToFront(e)
	} else {
		e = a.recent.PushFront(&serviceClients{serviceKey: key})
		a.services[key] = e
	}
	s := e.Value.(*serviceClients)
	s.by = slices.DeleteFunc(s.by, func(o clientRecord) bool {
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
	s.by = slices.Insert(s.by, 0, next)
	s.by = s.by[:min(len(s.by), clientsPerService)]
	if len(a.services) > a.maxServices {
		oldest := a.recent.Remove(a.recent.Back()).(*serviceClients)
		delete(a.services, oldest.serviceKey)
	}
}

// of returns the recent clients of a service, the latest first. current is the strategy that the
// service has now.
func (a *recentClients) of(tenant, service string, current *sampling.Strategy) []sampling.ServedRequest {
	sum := a.sum(current)
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []sampling.ServedRequest{}
	e, ok := a.services[serviceKey{tenant, service}]
	if !ok {
		return out
	}
	for _, by := range e.Value.(*serviceClients).by {
		by.Current = by.sum != 0 && by.sum == sum
		out = append(out, by.ServedRequest)
	}
	return out
}

// short returns a copy of s, truncated to maxRemembered bytes.
func short(s string) string {
	return strings.Clone(strings.ToValidUTF8(s[:min(len(s), maxRemembered)], "\uFFFD"))
}
