package sampling

import (
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// table holds the strategies of all services. It is immutable once it is active.
type table struct {
	services map[string]*entry
	other    *entry // for services that are not in the table
	ignored  []string
	warnings error // see strategiesFile
	// removed holds services whose entry was deleted, with the time since which their strategy is
	// unchanged.
	removed map[string]time.Time
}

// maxRemoved is the maximum size of table.removed.
const maxRemoved = 10_000

// entry is the strategy of a service with its origin.
type entry struct {
	strategy   *sampling.Strategy
	place      string // file:line, or the address of a collector
	rule       string
	operations map[string]operationOrigin
	since      time.Time
}

// operationOrigin is the origin of the strategy of one operation.
type operationOrigin struct{ place, rule string }

// of returns the entry of a service.
func (t *table) of(service string) *entry {
	if e, ok := t.services[service]; ok {
		return e
	}
	if since, ok := t.removed[service]; ok {
		e := *t.other
		e.since = since
		return &e
	}
	return t.other
}

// newTable returns the table of a strategies file. probability applies to services without an entry
// if there is no default strategy.
//
// A probabilistic service inherits the operation strategies of the default that it does not define
// itself. Its other operations have the probability of the service. A rate-limited service inherits
// none: clients ignore the limit if there are operation strategies.
func newTable(f *strategiesFile, probability float64) *table {
	t := &table{services: make(map[string]*entry, len(f.services)), ignored: f.ignored, warnings: f.warnings}
	if f.byDefault != nil {
		t.other = f.entry(*f.byDefault, keyDefault+": the service has no entry", "entry of the operation in "+keyDefault)
	} else {
		t.other = builtIn(probability, fmt.Sprintf("no entry in %s matches, and it has no %s: the built-in probability applies",
			f.doc.name, keyDefault))
	}
	for _, w := range f.services {
		e := f.entry(w, "entry of the service", "entry of the operation in the entry of the service")
		if w.typ == sampling.Probabilistic {
			e.inherit(t.other)
		}
		t.services[w.service] = e
	}
	return t
}

// builtIn returns the entry of services without a strategy in a file.
func builtIn(probability float64, rule string) *entry {
	return &entry{strategy: sampling.NewProbabilistic(probability), rule: rule}
}

func (f *strategiesFile) place(at int) string {
	return fmt.Sprintf("%s:%d", f.doc.name, f.doc.line(at))
}

// entry returns the entry for a strategy of the file.
func (f *strategiesFile) entry(w fileStrategy, rule, operationRule string) *entry {
	e := &entry{place: f.place(w.at), rule: rule}
	if w.typ == sampling.RateLimiting {
		e.strategy = sampling.NewRateLimiting(int32(w.param))
		return e
	}
	e.strategy = sampling.NewProbabilistic(w.param)
	for _, o := range w.operations {
		e.addOperation(sampling.Operation{Name: o.name, Probability: o.probability}, operationOrigin{f.place(o.at), operationRule})
	}
	return e
}

// addOperation adds the strategy of an operation, unless the entry already has one for it.
func (e *entry) addOperation(o sampling.Operation, origin operationOrigin) {
	if _, has := e.operations[o.Name]; has {
		return
	}
	if e.strategy.Operations == nil {
		e.strategy.Operations = &sampling.Operations{Default: *e.strategy.Probability}
		e.operations = map[string]operationOrigin{}
	}
	e.strategy.Operations.PerOperation = append(e.strategy.Operations.PerOperation, o)
	e.operations[o.Name] = origin
}

// inherit adds the operation strategies of the default.
func (e *entry) inherit(from *entry) {
	if from.strategy.Operations == nil {
		return
	}
	for _, o := range from.strategy.Operations.PerOperation {
		e.addOperation(o, from.operations[o.Name])
	}
}

// setSince sets the time since which each strategy is unchanged. before is the previous table; it
// may be nil.
func (t *table) setSince(before *table, now time.Time) {
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
	t.setRemoved(before, now)
}

// setRemoved fills t.removed with the services that had an entry in a previous table.
func (t *table) setRemoved(before *table, now time.Time) {
	t.removed = map[string]time.Time{}
	note := func(service string, since time.Time) {
		if _, listed := t.services[service]; !listed && since.After(t.other.since) && len(t.removed) < maxRemoved {
			t.removed[service] = since
		}
	}
	for service, e := range before.services {
		if e.strategy.Equal(t.other.strategy) {
			note(service, e.since)
		} else {
			note(service, now)
		}
	}
	for service, since := range before.removed {
		note(service, since)
	}
}
