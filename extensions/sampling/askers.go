package sampling

import (
	"container/list"
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
	since time.Time // of the strategy that it was told; zero for an error
}

func newAskers(most int) *askers { return &askers{most: most, services: map[askedFor]*list.Element{}} }

// remember notes a question and what was answered.
func (a *askers) remember(q sampling.Question, now time.Time, told string, since time.Time) {
	if a.most == 0 || q.Asker == (sampling.Asker{}) || len(q.Tenant)+len(q.Service) > 2*maxRemembered {
		return
	}
	q.Asker.Client, q.Asker.Address = short(q.Asker.Client), short(q.Asker.Address)
	next := asking{sampling.Asked{Asker: q.Asker, At: now, Told: short(told)}, since}
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
	s.by = slices.DeleteFunc(s.by, func(o asking) bool { return o.Asker == q.Asker })
	s.by = slices.Insert(s.by, 0, next)
	s.by = s.by[:min(len(s.by), askersPerService)]
	if len(a.services) > a.most {
		oldest := a.recent.Remove(a.recent.Back()).(*asked)
		delete(a.services, oldest.askedFor)
	}
}

// of returns who asked for a service, the latest first. since is the date of the strategy in force.
func (a *askers) of(tenant, service string, since time.Time) []sampling.Asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []sampling.Asked{}
	e, ok := a.services[askedFor{tenant, service}]
	if !ok {
		return out
	}
	for _, by := range e.Value.(*asked).by {
		by.Current = !by.since.IsZero() && by.since.Equal(since)
		out = append(out, by.Asked)
	}
	return out
}

// short returns a copy of what is remembered of a text.
func short(s string) string {
	return strings.Clone(strings.ToValidUTF8(s[:min(len(s), maxRemembered)], "\uFFFD"))
}
