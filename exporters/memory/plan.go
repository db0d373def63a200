package memory

import (
	"hash/maphash"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// source is a set of rows that has in it every row for which an expression holds.
type source struct {
	lists []*list
	rows  []*row
}

// size is the number of rows, and of lists to be merged.
func (s source) size() int {
	n := len(s.lists) + len(s.rows)
	for _, l := range s.lists {
		n += l.n
	}
	return n
}

func (s source) union(o source) source {
	return source{append(s.lists, o.lists...), append(s.rows, o.rows...)}
}

// planner finds the smallest source of an expression.
type planner struct {
	tenant *tenant
	seed   maphash.Seed
}

// plan returns the source to search: all rows where no index helps.
func (p planner) plan(e tracestore.Expr) source {
	if s, ok := p.expr(e); ok {
		return s
	}
	return source{lists: []*list{&p.tenant.all}}
}

// expr returns false where no index helps.
func (p planner) expr(e tracestore.Expr) (source, bool) {
	switch e := e.(type) {
	case tracestore.Cond:
		return p.cond(e)
	case tracestore.And:
		return p.and(e)
	case tracestore.Or:
		return p.or(e)
	}
	return source{}, false
}

// and takes the smallest source of the parts, or that of service and operation together.
func (p planner) and(parts tracestore.And) (source, bool) {
	best, ok := p.operation(parts)
	for _, part := range parts {
		if s, indexed := p.expr(part); indexed && (!ok || s.size() < best.size()) {
			best, ok = s, true
		}
	}
	return best, ok
}

// or needs an index for every part.
func (p planner) or(parts tracestore.Or) (source, bool) {
	var all source
	for _, part := range parts {
		s, ok := p.expr(part)
		if !ok {
			return source{}, false
		}
		all = all.union(s)
	}
	return all, true
}

// operation is the source of a service and an operation that are both among the parts.
func (p planner) operation(parts tracestore.And) (source, bool) {
	service, ok := text(parts, tracestore.Service)
	if !ok {
		return source{}, false
	}
	name, ok := text(parts, tracestore.Name)
	if !ok {
		return source{}, false
	}
	return p.tenant.services[service].named(name), true
}

// text returns what a place must be equal to.
func text(parts tracestore.And, place tracestore.Place) (string, bool) {
	for _, part := range parts {
		c, ok := part.(tracestore.Cond)
		if ok && c.Field.Place == place && c.Op == tracestore.Eq && !c.Value.IsNumber {
			return c.Value.Text, true
		}
	}
	return "", false
}

// named returns the spans of the service with a name, of all kinds. The service may be nil.
func (s *service) named(name string) source {
	var out source
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

func (p planner) cond(c tracestore.Cond) (source, bool) {
	if c.Op != tracestore.Eq {
		return source{}, false
	}
	switch place := c.Field.Place; {
	case place <= tracestore.LinkAttribute:
		return p.attribute(c)
	case c.Value.IsNumber:
		return source{}, false
	case place == tracestore.Service:
		if s := p.tenant.services[c.Value.Text]; s != nil {
			return source{lists: []*list{&s.rows}}, true
		}
		return source{}, true
	case place == tracestore.Name:
		var all source
		for _, s := range p.tenant.services {
			all = all.union(s.named(c.Value.Text))
		}
		return all, true
	case place == tracestore.Status && c.Value.Text == "error":
		return source{lists: []*list{&p.tenant.failed}}, true
	}
	return source{}, false
}

func (p planner) attribute(c tracestore.Cond) (source, bool) {
	texts, ok := textForms(c.Value)
	if !ok {
		return source{}, false
	}
	a := p.tenant.attributes[c.Field.Key]
	var out source
	if a == nil {
		return out, true
	}
	for _, text := range texts {
		h := maphash.String(p.seed, text)
		if place := c.Field.Place; place != tracestore.ResourceAttribute && place != tracestore.ScopeAttribute {
			out = out.union(a.rows.source(h))
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

func (ps postings) source(h uint64) source {
	switch p := ps[h]; {
	case p.many != nil:
		return source{lists: []*list{p.many}}
	case p.one != nil:
		return source{rows: []*row{p.one}}
	}
	return source{}
}

// textForms returns the text forms that values equal to a literal can have: false where they are too many to look up. Below 2^53 an
// integer and a float are equal exactly when their text forms are, except for the two zeros.
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
