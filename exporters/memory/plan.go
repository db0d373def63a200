package memory

import (
	"hash/maphash"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// candidates is a set of rows that contains every row for which an expression holds.
type candidates struct {
	lists []*list
	rows  []*row
}

// size returns the number of rows plus the number of lists to merge.
func (s candidates) size() int {
	n := len(s.lists) + len(s.rows)
	for _, l := range s.lists {
		n += l.n
	}
	return n
}

func (s candidates) union(o candidates) candidates {
	return candidates{append(s.lists, o.lists...), append(s.rows, o.rows...)}
}

// planner finds the smallest set of candidates for an expression.
type planner struct {
	tenant *tenant
	seed   maphash.Seed
}

// plan returns the candidates to search: all rows if no index can be used.
func (p planner) plan(e tracestore.Expr) candidates {
	if s, ok := p.expr(e); ok {
		return s
	}
	return candidates{lists: []*list{&p.tenant.all}}
}

// expr returns false if no index can be used.
func (p planner) expr(e tracestore.Expr) (candidates, bool) {
	switch e := e.(type) {
	case tracestore.Cond:
		return p.cond(e)
	case tracestore.And:
		return p.and(e)
	case tracestore.Or:
		return p.or(e)
	}
	return candidates{}, false
}

// and returns the smallest set of candidates of the parts, or the set for service and operation
// together.
func (p planner) and(parts tracestore.And) (candidates, bool) {
	best, ok := p.operation(parts)
	for _, part := range parts {
		if s, indexed := p.expr(part); indexed && (!ok || s.size() < best.size()) {
			best, ok = s, true
		}
	}
	return best, ok
}

// or requires an index for each part.
func (p planner) or(parts tracestore.Or) (candidates, bool) {
	var all candidates
	for _, part := range parts {
		s, ok := p.expr(part)
		if !ok {
			return candidates{}, false
		}
		all = all.union(s)
	}
	return all, true
}

// operation returns the candidates for a service and an operation, if both are among the parts.
func (p planner) operation(parts tracestore.And) (candidates, bool) {
	service, ok := text(parts, tracestore.Service)
	if !ok {
		return candidates{}, false
	}
	name, ok := text(parts, tracestore.Name)
	if !ok {
		return candidates{}, false
	}
	return p.tenant.services[service].named(name), true
}

// text returns the text that a property must equal.
func text(parts tracestore.And, place tracestore.Place) (string, bool) {
	for _, part := range parts {
		c, ok := part.(tracestore.Cond)
		if ok && c.Field.Place == place && c.Op == tracestore.Eq && !c.Value.IsNumber {
			return c.Value.Text, true
		}
	}
	return "", false
}

// named returns the spans of the service with a name and any kind. The service may be nil.
func (s *service) named(name string) candidates {
	var out candidates
	if s == nil {
		return out
	}
	for _, kind := range []string{"", "client", "server", "producer", "consumer", "internal"} {
		if l := s.operations[tracestore.Operation{Name: name, Kind: kind}]; l != nil {
			out.lists = append(out.lists, l)
		}
	}
	return out
}

func (p planner) cond(c tracestore.Cond) (candidates, bool) {
	if c.Op != tracestore.Eq {
		return candidates{}, false
	}
	switch place := c.Field.Place; {
	case place <= tracestore.LinkAttribute:
		return p.attribute(c)
	case c.Value.IsNumber:
		return candidates{}, false
	case place == tracestore.Service:
		if s := p.tenant.services[c.Value.Text]; s != nil {
			return candidates{lists: []*list{&s.rows}}, true
		}
		return candidates{}, true
	case place == tracestore.Name:
		var all candidates
		for _, s := range p.tenant.services {
			all = all.union(s.named(c.Value.Text))
		}
		return all, true
	case place == tracestore.Status && c.Value.Text == "error":
		return candidates{lists: []*list{&p.tenant.failed}}, true
	}
	return candidates{}, false
}

func (p planner) attribute(c tracestore.Cond) (candidates, bool) {
	texts, ok := textForms(c.Value)
	if !ok {
		return candidates{}, false
	}
	a := p.tenant.attributes[c.Field.Key]
	var out candidates
	if a == nil {
		return out, true
	}
	for _, text := range append(texts, otlpdata.LongArray) {
		h := maphash.String(p.seed, text)
		if place := c.Field.Place; place != tracestore.ResourceAttribute && place != tracestore.ScopeAttribute {
			out = out.union(a.rows.candidates(h))
		}
		switch c.Field.Place {
		case tracestore.AnyAttribute, tracestore.ResourceAttribute, tracestore.ScopeAttribute:
			for _, o := range a.origins[h] {
				out.lists = append(out.lists, &o.rows)
			}
		}
	}
	return out, true
}

func (ps postings) candidates(h uint64) candidates {
	switch p := ps[h]; {
	case p.many != nil:
		return candidates{lists: []*list{p.many}}
	case p.one != nil:
		return candidates{rows: []*row{p.one}}
	}
	return candidates{}
}

// textForms returns the text forms of all values that are equal to a literal, or false if there are
// too many. Below 2^53, an integer and a float are equal if and only if their text forms are,
// except for the two zeros.
func textForms(l tracestore.Literal) ([]string, bool) {
	switch {
	case !l.IsNumber:
		return []string{l.Text}, true
	case math.Abs(l.Number) >= 1<<53 || math.IsNaN(l.Number):
		return nil, false
	case l.Number == 0:
		return []string{"0", "-0"}, true
	}
	return []string{otlpdata.DoubleValue(l.Number).AsString()}, true
}
