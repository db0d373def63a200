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
	// askersPerService is how many clients of a service are remembered.
	askersPerService = 8
	// maxRemembered bounds what is remembered of a name or an error, in bytes.
	maxRemembered = 200
)

// askers remembers who asked last, for the services that were asked for last.
type askers struct {
	most int // services
	seed maphash.Seed

	mu       sync.Mutex
	services map[askedFor]*list.Element // of *asked
	recent   list.List                  // the latest first
}

type askedFor struct{ tenant, service string }

type asked struct {
	askedFor
	by []asking // the latest first, each client once
}

type asking struct {
	sampling.Asked
	sum uint64 // of the strategy that it was told, see [askers.sum]; 0 for an error
}

func newAskers(most int) *askers {
	return &askers{most: most, seed: maphash.MakeSeed(), services: map[askedFor]*list.Element{}}
}

// sum is a number that strategies have in common which tell clients the same; nil, an error, is 0.
func (a *askers) sum(s *sampling.Strategy) uint64 {
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
		for _, e := range o.Each {
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

// remember notes a question and what was answered: a strategy, or an error.
func (a *askers) remember(q sampling.Question, now time.Time, told *sampling.Strategy, err error) {
	if a.most == 0 || q.Asker == (sampling.Asker{}) || len(q.Tenant)+len(q.Service) > 2*maxRemembered {
		return
	}
	q.Asker.Client, q.Asker.Address = short(q.Asker.Client), short(q.Asker.Address)
	next := asking{Asked: sampling.Asked{Asker: q.Asker, At: now}}
	if err != nil {
		next.Told, next.Failed = short("error: "+err.Error()), true
	} else {
		next.Told, next.sum = short(told.String()), a.sum(told)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := askedFor{q.Tenant, q.Service}
	e, ok := a.services[key]
	if ok {
		a.recent.MoveToFront(e)
	} else {
		e = a.recent.PushFront(&asked{askedFor: key})
		a.services[key] = e
	}
	s := e.Value.(*asked)
	s.by = slices.DeleteFunc(s.by, func(o asking) bool {
		if o.Asker != q.Asker {
			return false
		}
		if next.Failed {
			if next.Kept = o.Told; o.Failed {
				next.Kept = o.Kept
			}
		}
		return true
	})
	s.by = slices.Insert(s.by, 0, next)
	s.by = s.by[:min(len(s.by), askersPerService)]
	if len(a.services) > a.most {
		oldest := a.recent.Remove(a.recent.Back()).(*asked)
		delete(a.services, oldest.askedFor)
	}
}

// of returns who asked for a service, the latest first. inForce is what it is told now.
func (a *askers) of(tenant, service string, inForce *sampling.Strategy) []sampling.Asked {
	sum := a.sum(inForce)
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []sampling.Asked{}
	e, ok := a.services[askedFor{tenant, service}]
	if !ok {
		return out
	}
	for _, by := range e.Value.(*asked).by {
		by.Current = by.sum != 0 && by.sum == sum
		out = append(out, by.Asked)
	}
	return out
}

// short returns a copy of what is remembered of a text.
func short(s string) string {
	return strings.Clone(strings.ToValidUTF8(s[:min(len(s), maxRemembered)], "\uFFFD"))
}
