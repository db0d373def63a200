package scan

import (
	"cmp"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Cost of evaluating one row, in arbitrary units.
const (
	costArray = 1   // a number of a column that is decoded anyway
	costCell  = 4   // a cell
	costHead  = 6   // the ids
	costSpan  = 200 // the whole span
)

// bind returns the expression of the query for the rows of a shape (what similar spans have in
// common). Rows of other tenants and rows whose definitions were lost do not match.
func (p *Plan) bind(shape uint32) node {
	s := &p.Tables.Shapes[shape]
	if s.Tenant != p.query.tenant || !Readable(p.Tables, s) {
		return node{known: no}
	}
	b := binder{p, shape, s}
	return b.node(&p.query.where)
}

// binder binds expressions to one shape.
type binder struct {
	plan  *Plan
	id    uint32
	shape *rows.Shape
}

func (b *binder) node(e *expr) node {
	switch e.kind {
	case condExpr:
		return b.cond(e.cond)
	case notExpr:
		n := b.node(&e.parts[0])
		if n.known != depends {
			return node{known: negate(n.known)}
		}
		return node{known: depends, kind: notExpr, parts: []node{n}, cost: n.cost}
	}
	return b.list(e)
}

// list removes the parts that the shape decides and puts the cheapest first.
func (b *binder) list(e *expr) node {
	decisive := no
	if e.kind == orExpr {
		decisive = yes
	}
	var buf [4]node // most shapes leave at most one part
	parts, cost := buf[:0], 0
	for i := range e.parts {
		n := b.node(&e.parts[i])
		switch n.known {
		case decisive:
			return node{known: decisive}
		case depends:
			parts = append(parts, n)
			cost += n.cost
		}
	}
	switch len(parts) {
	case 0:
		return node{known: negate(decisive)}
	case 1:
		return parts[0]
	}
	slices.SortStableFunc(parts, func(a, b node) int { return cmp.Compare(a.cost, b.cost) })
	return node{known: depends, kind: e.kind, parts: slices.Clone(parts), cost: cost}
}

// cond finds the cells that have values of the condition's field.
func (b *binder) cond(c int) node {
	l := leaf{cond: &b.plan.query.conds[c], number: c, facts: &b.plan.facts[c]}
	v := no
	place := l.cond.Field.Place
	switch at := BindingOf(place); {
	case place == tracestore.Duration:
		l.duration = true
		v = evaluateDuration(l.cond, AnyDuration)
	case place == tracestore.ParentID:
		l.parent = true
		v = depends
	case at.Computed: // of failed spans only
		l.encoded = b.shape.Status == otlpdata.StatusError
		if l.encoded {
			v = depends
		}
	case at.InShape && !at.HasCell(b.plan.Tables, b.shape):
		v = b.match(c, place)
	default:
		if place == tracestore.AnyText {
			v = b.common(c)
		} else if at.Scope {
			v = b.match(c, tracestore.ScopeAttribute)
		}
		if at.Resource && v != yes {
			v = or(v, b.resource(&l, c))
		}
		if v != yes {
			v = or(v, b.columns(&l, c))
		}
	}
	if v != depends {
		return node{known: v}
	}
	return node{known: depends, kind: condExpr, leaf: b.plan.leaves.add(l), cost: l.cost()}
}

func or(a, b verdict) verdict {
	switch {
	case a == yes || b == yes:
		return yes
	case a == depends || b == depends:
		return depends
	}
	return no
}

func (l *leaf) cost() int {
	n := costArray + costCell*(len(l.strings)+len(l.other))
	if l.parent {
		n += costHead
	}
	if l.encoded {
		n += costSpan
	}
	return n
}

// match evaluates a condition on the properties that all spans of the shape have in common.
func (b *binder) match(c int, place tracestore.Place) verdict {
	asked := b.plan.query.conds[c].Cond
	asked.Field.Place = place
	return verdictOf(tracestore.Match(asked, b.plan.Common(b.shape)))
}

// common evaluates a condition on AnyText on the properties that all spans of the shape have in
// common, without the resource.
func (b *binder) common(c int) verdict {
	v := no
	for _, p := range tracestore.TextPlaces() {
		if at := BindingOf(p); at.InShape && !at.HasCell(b.plan.Tables, b.shape) {
			v = or(v, b.match(c, p))
		}
	}
	for _, kv := range b.plan.Tables.Scopes[b.shape.Scope].Attributes {
		v = or(v, verdictOf(b.plan.query.conds[c].Holds(kv.Value)))
	}
	return v
}

func (b *binder) resource(l *leaf, c int) verdict {
	f := b.plan.resourceFacts(c)
	l.resource = f.all == depends
	return f.all
}

// columns visits the columns of the shape that have values of the field.
func (b *binder) columns(l *leaf, c int) verdict {
	v := no
	field := l.cond.Field
	for i, id := range b.shape.Columns {
		switch col := &b.plan.Tables.Columns[id]; {
		case ColumnHolds(field, col):
			v = or(v, b.cell(l, c, i))
		case MayEncode(field.Place, col.Place):
			l.encoded = true
			l.blobs = append(l.blobs, i)
			v = or(v, depends)
		case col.Place == rows.EventTime && (field.Place == tracestore.EventName || field.Place == tracestore.AnyText) && !b.named(i):
			v = or(v, verdictOf(l.cond.Holds(otlpdata.StringValue(""))))
		}
	}
	return v
}

// named reports whether the event whose time is at a position has a name.
func (b *binder) named(at int) bool {
	return at+1 < len(b.shape.Columns) && b.plan.Tables.Columns[b.shape.Columns[at+1]].Place == rows.EventName
}

// filtered reports whether filters cover the values of a kind other than strings that are equal to
// the literal of a condition. The two float zeros are equal, but have different texts.
func (b *binder) filtered(c *cond, kind otlpdata.ValueKind) bool {
	switch kind {
	case otlpdata.ValueInt:
		return b.plan.Source.HoldsIntegers()
	case otlpdata.ValueArray:
		return !c.Value.IsNumber && b.plan.elements
	}
	return false
}

// cell evaluates a condition on a cell as far as possible without rows. If the result depends on
// the row, the leaf gets the cell.
func (b *binder) cell(l *leaf, c, index int) verdict {
	column := b.shape.Columns[index]
	kind := b.plan.Tables.Columns[column].Kind
	switch {
	case !l.cond.possible(kind):
		return no
	case l.cond.Op == tracestore.Exists && l.cond.possibleWhole(kind):
		return yes
	case kind == otlpdata.ValueEmpty:
		return verdictOf(l.cond.Holds(otlpdata.Value{}))
	}
	if cell, ok := b.plan.Source.Constant(b.id, index); ok {
		return verdictOf(l.cond.Holds(b.plan.Value(column, cell)))
	}
	if kind != otlpdata.ValueString {
		l.other = append(l.other, position{index: index, column: column})
		l.unfiltered = l.unfiltered || !b.filtered(l.cond, kind)
		return depends
	}
	w := b.plan.wordFacts(c, column)
	if w.all == depends {
		l.strings = append(l.strings, position{index, column, w})
	}
	return w.all
}
