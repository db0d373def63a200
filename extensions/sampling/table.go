package sampling

import (
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// table is the strategies of all services. It is not changed once it is in force.
type table struct {
	services map[string]*entry
	other    *entry // of services that are not in the table
	ignored  []string
	left     map[string]time.Time // services whose entry is gone, and since when others' strategy is theirs; at most maxLeft
}

// maxLeft is of how many services that lost their entry is known when.
const maxLeft = 10_000

// entry is the strategy of a service, and where it comes from.
type entry struct {
	strategy   *sampling.Strategy
	place      string // file:line
	rule       string
	operations map[string]operationOrigin
	since      time.Time
}

// operationOrigin is where the strategy of one operation comes from.
type operationOrigin struct{ place, rule string }

// of returns the entry of a service.
func (t *table) of(service string) *entry {
	if e, ok := t.services[service]; ok {
		return e
	}
	if since, ok := t.left[service]; ok {
		e := *t.other
		e.since = since
		return &e
	}
	return t.other
}

// newTable makes the table of what a file says. rest is the probability of services for which it says nothing.
//
// A service with operations of its own gets those of the default besides, where it does not have them itself. One without gets them all,
// and its own probability for other operations. A service with a limit gets none of them: a client that is told of operations ignores the
// limit.
func newTable(f *writtenFile, rest float64) *table {
	t := &table{services: make(map[string]*entry, len(f.services)), ignored: f.ignored}
	if f.byDefault != nil {
		t.other = f.entry(*f.byDefault, keyDefault+": the service has no entry of its own", "the operation's entry in "+keyDefault)
	} else {
		t.other = builtIn(rest, fmt.Sprintf("no entry of %s fits, and it has no %s: the built-in probability holds",
			f.doc.name, keyDefault))
	}
	for _, w := range f.services {
		e := f.entry(w, "the service's own entry", "the operation's entry in that of the service")
		if w.typ == sampling.Probabilistic {
			e.inherit(t.other)
		}
		t.services[w.service] = e
	}
	return t
}

// builtIn returns the entry of services of which no file says anything.
func builtIn(rest float64, rule string) *entry {
	return &entry{strategy: sampling.NewProbabilistic(rest), rule: rule}
}

func (f *writtenFile) place(at int) string { return fmt.Sprintf("%s:%d", f.doc.name, f.doc.line(at)) }

// entry makes the entry of a strategy that is written in the file.
func (f *writtenFile) entry(w written, rule, operationRule string) *entry {
	e := &entry{place: f.place(w.at), rule: rule}
	if w.typ == sampling.RateLimiting {
		e.strategy = sampling.NewRateLimiting(int32(w.param))
		return e
	}
	e.strategy = sampling.NewProbabilistic(w.param)
	for _, o := range w.operations {
		e.add(sampling.Operation{Name: o.name, Probability: o.probability}, operationOrigin{f.place(o.at), operationRule})
	}
	return e
}

// add adds the strategy of an operation, unless it has one.
func (e *entry) add(o sampling.Operation, origin operationOrigin) {
	if _, has := e.operations[o.Name]; has {
		return
	}
	if e.strategy.Operations == nil {
		e.strategy.Operations = &sampling.Operations{Default: *e.strategy.Probability}
		e.operations = map[string]operationOrigin{}
	}
	e.strategy.Operations.Each = append(e.strategy.Operations.Each, o)
	e.operations[o.Name] = origin
}

// inherit adds the operations of the default.
func (e *entry) inherit(from *entry) {
	if from.strategy.Operations == nil {
		return
	}
	for _, o := range from.strategy.Operations.Each {
		e.add(o, from.operations[o.Name])
	}
}

// date sets since when the strategies hold: those that a service was told by the table before, which may be nil, have held for longer.
func (t *table) date(before *table, now time.Time) {
	set := func(e, old *entry) {
		if e.since = now; old != nil && old.strategy.Equal(e.strategy) {
			e.since = old.since
		}
	}
	for service, e := range t.services {
		if before == nil {
			set(e, nil)
			continue
		}
		set(e, before.of(service))
	}
	if before == nil {
		set(t.other, nil)
		return
	}
	set(t.other, before.other)
	t.leave(before, now)
}

// leave dates the strategy of services that had another one by an entry, which they have no more.
func (t *table) leave(before *table, now time.Time) {
	t.left = map[string]time.Time{}
	note := func(service string, since time.Time) {
		if _, listed := t.services[service]; !listed && since.After(t.other.since) && len(t.left) < maxLeft {
			t.left[service] = since
		}
	}
	for service, e := range before.services {
		if e.strategy.Equal(t.other.strategy) {
			note(service, e.since)
		} else {
			note(service, now)
		}
	}
	for service, since := range before.left {
		note(service, since)
	}
}
