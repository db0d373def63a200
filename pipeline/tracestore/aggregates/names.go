package aggregates

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// maxParts is the maximum number of parts into which spans are divided by their names.
const maxParts = 64

var (
	errManyNames = fmt.Errorf("attributes have more than %d combinations of names; group by fewer attributes or configure fewer names",
		maxParts)
	errAllFacets = errors.New("facets of all fields do not go together with groups by an attribute that has several names; " +
		"request them separately")
	errLacks = errors.New("response of the store lacks requested facets or groups")
)

// Aggregate is like the method of the store, but also supports fields with
// [tracestore.Field.Names]. It counts the spans by each name alone. If spans have several names of
// an attribute, it counts the spans whose first name is the same, one name after the other, and
// adds the results.
func Aggregate(
	ctx context.Context, store tracestore.Aggregator, q tracestore.Query, a tracestore.Aggregation,
) (out tracestore.Aggregate, err error) {
	facets, groups := named(a.Facets.Fields...), named(groupFields(&a)...)
	if len(facets)+len(groups) == 0 {
		return store.Aggregate(ctx, q, a)
	}
	if err := a.Check(q); err != nil {
		return out, err
	}
	if a.Facets.Values > 0 && len(a.Facets.Fields) == 0 {
		return out, errAllFacets
	}
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return out, err
	}
	defer memory.Release()
	c := counting{ctx: ctx, store: store, query: q, memory: memory, present: make(map[tracestore.Field]bool)}
	if out, err = c.byName(a, slices.Concat(facets, groups)); err != nil {
		return out, err
	}
	if out.Facets != nil {
		if err := c.joinFacets(&a.Facets, &out); err != nil {
			return out, err
		}
	}
	if len(groups) > 0 {
		err = c.addGroups(&a, &out)
	}
	out.Reasons.Add(c.missing...)
	return out, err
}

// groupFields returns the fields of groups.
func groupFields(a *tracestore.Aggregation) []tracestore.Field {
	if a.Groups.Measure == tracestore.MeasureNone {
		return a.Groups.By
	}
	return append(slices.Clip(a.Groups.By), a.Groups.Of)
}

// named returns the fields that have Names.
func named(fields ...tracestore.Field) (out []tracestore.Field) {
	for _, f := range fields {
		if f.Names != "" {
			out = append(out, f)
		}
	}
	return out
}

// counting is a running call of Aggregate.
type counting struct {
	ctx     context.Context
	store   tracestore.Aggregator
	query   tracestore.Query
	memory  *tracestore.Memory
	present map[tracestore.Field]bool // fields without Names that spans have
	missing tracestore.Reasons
}

// ask returns the result of the store, which may be a faulty one in another process.
func (c *counting) ask(q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	r, err := c.store.Aggregate(c.ctx, q, a)
	if err == nil && (a.Groups.Requested() && r.Groups == nil || a.Facets.Values > 0 && r.Facets == nil) {
		err = errLacks
	}
	return r, err
}

// byName runs the aggregation with each name as a field of its own, and sets c.present. The result
// has a facet for each name instead of one for all. It has no groups if one of their fields has
// Names. Names beyond MaxFacets are counted by further calls.
func (c *counting) byName(a tracestore.Aggregation, fields []tracestore.Field) (tracestore.Aggregate, error) {
	requested := a.Facets
	if len(named(groupFields(&a)...)) > 0 {
		a.Groups = tracestore.GroupQuery{}
	}
	a.Facets.Fields = slices.DeleteFunc(slices.Clone(requested.Fields), func(f tracestore.Field) bool { return f.Names != "" })
	for _, f := range fields {
		for one := range f.EachName() {
			if !slices.Contains(a.Facets.Fields, one) {
				a.Facets.Fields = append(a.Facets.Fields, one)
			}
		}
	}
	a.Facets.Values = max(requested.Values, 1)
	all := a.Facets.Fields
	a.Facets.Fields = all[:min(len(all), tracestore.MaxFacets)]
	out, err := c.ask(c.query, a)
	if err != nil {
		return out, err
	}
	for rest := range slices.Chunk(all[len(a.Facets.Fields):], tracestore.MaxFacets) {
		a.Facets.Fields = rest
		more, err := c.ask(c.query, tracestore.Aggregation{Facets: a.Facets})
		if err != nil {
			return out, err
		}
		out.Scanned += more.Scanned
		out.Reasons.Add(more.Reasons...)
		out.Facets.Facets = append(out.Facets.Facets, scaled(more.Facets, out.Facets.Share).Facets...)
	}
	for i := range out.Facets.Facets {
		f := &out.Facets.Facets[i]
		c.present[f.Field] = f.Spans > 0
	}
	if requested.Values == 0 {
		out.Facets = nil
	}
	return out, nil
}

// joinFacets replaces the facets of names with the requested facets.
func (c *counting) joinFacets(want *tracestore.FacetQuery, out *tracestore.Aggregate) error {
	found := out.Facets
	byField := make(map[tracestore.Field]tracestore.Facet)
	for _, f := range found.Facets {
		byField[f.Field] = f
	}
	found.Facets = nil
	for _, f := range want.Fields {
		names := c.namesOf(f)
		facet := byField[names[0]]
		if len(names) > 1 {
			sum, err := c.add(tracestore.Aggregation{Facets: tracestore.FacetQuery{
				Values: want.Values, All: want.All, Selection: want.Selection, Fields: []tracestore.Field{f}}}, []tracestore.Field{f})
			if err != nil {
				return err
			}
			out.Scanned += sum.Scanned
			facet = scaled(sum.Facets, found.Share).Facets[0]
		}
		facet.Field = f
		found.Facets = append(found.Facets, facet)
	}
	return nil
}

// addGroups adds the requested groups to a result.
func (c *counting) addGroups(a *tracestore.Aggregation, out *tracestore.Aggregate) error {
	sum, err := c.add(tracestore.Aggregation{Groups: a.Groups}, named(groupFields(a)...))
	if err != nil {
		return err
	}
	out.Groups = sum.Groups
	out.Scanned += sum.Scanned
	if out.Heatmap == nil && out.Facets == nil { // these would come first
		out.Spans, out.Errors, out.Share, out.RelativeError = sum.Spans, sum.Errors, sum.Share, sum.RelativeError
	}
	return nil
}

// namesOf returns the names of a field that spans have, or its first name.
func (c *counting) namesOf(f tracestore.Field) (names []tracestore.Field) {
	for one := range f.EachName() {
		if c.present[one] {
			names = append(names, one)
		}
	}
	if len(names) == 0 {
		for one := range f.EachName() {
			return []tracestore.Field{one}
		}
	}
	return names
}

// part is the spans that meet a condition, and the name that has the values of each field there.
type part struct {
	where tracestore.And
	names map[tracestore.Field]tracestore.Field
}

// parts divides all spans by the first name that they have of each field.
func (c *counting) parts(fields []tracestore.Field) ([]part, error) {
	all := []part{{}}
	for _, f := range fields {
		names := c.namesOf(f)
		var divided []part
		for _, p := range all {
			for i, name := range names {
				here := part{where: slices.Clip(p.where), names: map[tracestore.Field]tracestore.Field{f: name}}
				for of, name := range p.names {
					here.names[of] = name
				}
				has := tracestore.Cond{Field: name, Op: tracestore.Exists}
				if i < len(names)-1 {
					here.where = append(here.where, has)
				}
				divided = append(divided, here)
				p.where = append(slices.Clip(p.where), tracestore.Not{Expr: has})
			}
		}
		if all = divided; len(all) > maxParts {
			return nil, errManyNames
		}
	}
	return all, nil
}

// add runs an aggregation whose facets and groups have fields with Names.
func (c *counting) add(a tracestore.Aggregation, fields []tracestore.Field) (out tracestore.Aggregate, err error) {
	parts, err := c.parts(fields)
	if err != nil {
		return out, err
	}
	var results []*tracestore.Aggregate
	for _, p := range parts {
		q, of := c.query, a
		if q.Budget.Spans > 0 {
			q.Budget.Spans = max(q.Budget.Spans/len(parts), 1)
		}
		switch {
		case len(p.where) == 0:
		case q.Where == nil:
			q.Where = p.where
		default:
			q.Where = append(slices.Clip(p.where), q.Where)
		}
		of.Facets.Fields, of.Groups.By, of.Groups.Of = p.rename(a.Facets.Fields), p.rename(a.Groups.By), p.nameOf(a.Groups.Of)
		of.Facets.All, of.Groups.All = a.Facets.Values > 0, a.Groups.Requested()
		r, err := c.ask(q, of)
		if err != nil {
			return out, err
		}
		if err := c.memory.Grow(Size(&r)); err != nil {
			return out, err
		}
		if r.Facets != nil {
			if len(r.Facets.Facets) != len(a.Facets.Fields) {
				return out, errLacks
			}
			for i := range r.Facets.Facets {
				r.Facets.Facets[i].Field = a.Facets.Fields[i]
			}
		}
		results = append(results, &r)
	}
	out = Add(c.query, a, results, c.memory)
	c.missing.Add(out.Reasons...)
	return out, nil
}

func (p *part) rename(fields []tracestore.Field) (out []tracestore.Field) {
	for _, f := range fields {
		out = append(out, p.nameOf(f))
	}
	return out
}

func (p *part) nameOf(f tracestore.Field) tracestore.Field {
	if name, ok := p.names[f]; ok {
		return name
	}
	return f
}

// scaled scales the counts of facets to another share of the spans, and keeps the values sorted.
func scaled(f *tracestore.Facets, share float64) *tracestore.Facets {
	if f.Share > 0 && share > 0 {
		thinFacets(f, share/f.Share)
		for _, one := range f.Facets {
			slices.SortFunc(one.Values, storequery.CompareFacetValues)
		}
	}
	return f
}

// JoinFacets changes the facets of a query for all fields: the names of an attribute get one facet
// together, which shows the newest name that was found. Other facets of renamed attributes get
// their [tracestore.Field.Names]. names returns the names of a key, or "". count counts the joined
// fields.
func JoinFacets(
	found *tracestore.Facets, want tracestore.FacetQuery, names func(key string) string,
	count func(tracestore.FacetQuery) (*tracestore.Facets, error),
) error {
	keys := make(map[tracestore.Field][]string) // that were found, by attribute without its key
	for i := range found.Facets {
		f := &found.Facets[i].Field
		if f.Place.HasKey() {
			f.Names = names(f.Key)
		}
		if f.Names != "" {
			id := tracestore.Field{Place: f.Place, Names: f.Names}
			keys[id] = append(keys[id], f.Key)
		}
	}
	want.Fields = nil
	var rest []tracestore.Facet
	for _, f := range found.Facets {
		id := tracestore.Field{Place: f.Field.Place, Names: f.Field.Names}
		if n := len(keys[id]); n == 0 || n == 1 && found.Omitted == 0 {
			rest = append(rest, f)
			continue
		}
		for name := range id.EachName() {
			if slices.Contains(keys[id], name.Key) {
				f.Field.Key = name.Key
				break
			}
		}
		if !slices.Contains(want.Fields, f.Field) {
			want.Fields = append(want.Fields, f.Field)
		}
	}
	if len(want.Fields) == 0 {
		return nil
	}
	joined, err := count(want)
	if err != nil {
		return err
	}
	found.Facets = append(rest, scaled(joined, found.Share).Facets...)
	storequery.SortFacets(found.Facets)
	return nil
}
