package memory

import (
	"iter"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// service holds the spans of a service. It exists while it has spans.
type service struct {
	name       string
	rows       list
	operations map[tracestore.Operation]*list
}

// attribute indexes the values of an attribute key on spans (including events and links) and on
// origins. It exists while it has values.
type attribute struct {
	key     string
	rows    postings
	origins map[uint64][]*origin
}

// postings maps the hash of a value to the rows with that value. Most values occur once, so a
// single row needs no list.
type postings map[uint64]posting

type posting struct {
	one  *row
	many *list // nil if there is only one
}

// add adds a row and returns the memory that it used.
func (ps postings) add(h uint64, r *row) int64 {
	p, ok := ps[h]
	switch {
	case !ok:
		ps[h] = posting{one: r}
		return costTerm
	case p.many != nil:
		return cost(p.many.add(r))
	case p.one == r:
		return 0
	}
	l := new(list)
	l.add(p.one)
	l.add(r)
	ps[h] = posting{many: l}
	return costList + 2*costRef
}

// remove removes a row and returns the memory that it released.
func (ps postings) remove(h uint64, r *row) int64 {
	p := ps[h]
	switch {
	case p.many == nil:
		if p.one == nil || p.one != r {
			return 0
		}
		delete(ps, h)
		return costTerm
	case !p.many.remove(r):
		return 0
	case p.many.n > 0:
		return costRef
	}
	delete(ps, h)
	return costRef + costList + costTerm
}

// rows yields the rows with a hash.
func (ps postings) rows(h uint64) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		p := ps[h]
		if p.many == nil {
			if p.one != nil {
				yield(p.one)
			}
			return
		}
		for _, b := range p.many.blocks {
			for _, r := range b {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// cost returns the memory of a row in a list if a row was added or removed.
func cost(changed bool) int64 {
	if changed {
		return costRef
	}
	return 0
}

// index adds a row to all indexes.
func (t *tenant) index(r *row, identity uint64, s *stagedSpan, values []term) {
	bytes := t.identity.add(identity, r)
	bytes += cost(t.all.add(r)) + cost(r.origin.rows.add(r)) + cost(r.origin.service.rows.add(r))
	bytes += cost(t.operation(r.origin.service, s.name, s.kind).add(r))
	if s.failed {
		bytes += cost(t.failed.add(r))
	}
	for i := range values {
		bytes += t.attribute(values[i].key).rows.add(values[i].hash, r)
	}
	t.usage.bytes += bytes
}

// unindex removes a row from all indexes, and removes services, operations, attributes and origins
// without rows.
func (t *tenant) unindex(r *row, identity uint64, s *stagedSpan, values []term) {
	svc := r.origin.service
	bytes := t.identity.remove(identity, r)
	bytes += cost(t.all.remove(r)) + cost(r.origin.rows.remove(r)) + cost(svc.rows.remove(r))
	op := tracestore.Operation{Name: s.name, Kind: s.kind}
	if l := svc.operations[op]; l != nil {
		bytes += cost(l.remove(r))
		if l.n == 0 {
			delete(svc.operations, op)
			bytes += costName + int64(len(op.Name))
		}
	}
	if s.failed {
		bytes += cost(t.failed.remove(r))
	}
	for _, v := range values {
		if a := t.attributes[v.key]; a != nil {
			bytes += a.rows.remove(v.hash, r) + t.dropAttribute(a)
		}
	}
	t.usage.bytes -= bytes
	if r.origin.rows.n == 0 {
		t.dropOrigin(r.origin)
	}
}

func (t *tenant) dropOrigin(o *origin) {
	for _, v := range o.terms {
		if a := t.attributes[v.key]; a != nil {
			t.usage.bytes -= a.removeOrigin(v.hash, o) + t.dropAttribute(a)
		}
	}
	delete(t.origins, o.key)
	t.usage.bytes -= o.cost
	if o.service.rows.n == 0 {
		delete(t.services, o.service.name)
		t.usage.bytes -= costName + int64(len(o.service.name))
	}
}

// dropAttribute removes an attribute key if it has no values, and returns the memory that it
// released.
func (t *tenant) dropAttribute(a *attribute) int64 {
	if len(a.rows) > 0 || len(a.origins) > 0 {
		return 0
	}
	delete(t.attributes, a.key)
	return costName + int64(len(a.key))
}

// service, operation and attribute return an entry, and create it if necessary. They copy names,
// which share memory with a request.

func (t *tenant) service(name string) *service {
	s := t.services[name]
	if s == nil {
		s = &service{name: strings.Clone(name), operations: make(map[tracestore.Operation]*list)}
		t.services[s.name] = s
		t.usage.bytes += costName + int64(len(name))
	}
	return s
}

func (t *tenant) operation(s *service, name, kind string) *list {
	l := s.operations[tracestore.Operation{Name: name, Kind: kind}]
	if l == nil {
		l = new(list)
		s.operations[tracestore.Operation{Name: strings.Clone(name), Kind: kind}] = l
		t.usage.bytes += costName + int64(len(name))
	}
	return l
}

func (t *tenant) attribute(key string) *attribute {
	a := t.attributes[key]
	if a == nil {
		a = &attribute{key: strings.Clone(key), rows: make(postings), origins: make(map[uint64][]*origin)}
		t.attributes[a.key] = a
		t.usage.bytes += costName + int64(len(key))
	}
	return a
}

// addOrigin adds an origin and returns the memory that it used.
func (a *attribute) addOrigin(h uint64, o *origin) int64 {
	list := a.origins[h]
	if len(list) > 0 && list[len(list)-1] == o {
		return 0
	}
	a.origins[h] = append(list, o)
	if len(list) == 0 {
		return costTerm + costRef
	}
	return costRef
}

// removeOrigin removes an origin and returns the memory that it released.
func (a *attribute) removeOrigin(h uint64, o *origin) int64 {
	list := a.origins[h]
	i := slices.Index(list, o)
	switch {
	case i < 0:
		return 0
	case len(list) == 1:
		delete(a.origins, h)
		return costTerm + costRef
	}
	a.origins[h] = slices.Delete(list, i, i+1)
	return costRef
}
