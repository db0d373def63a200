package aggregate

import (
	"errors"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

func newFacetTotal(q tracestore.FacetQuery) *facetTotal {
	return &facetTotal{counter: storequery.NewFacetCounter(q), needs: newFacetNeeds(q.Fields),
		index: make(map[*storequery.FieldCounter]*facetField)}
}

// facetNeeds says which parts of a span the facets need.
type facetNeeds struct {
	resources bool // attributes of resources
	whole     bool // fields that need whole spans
}

func newFacetNeeds(fields []tracestore.Field) facetNeeds {
	f := facetNeeds{resources: len(fields) == 0}
	for _, field := range fields {
		switch {
		case field.Place == tracestore.SpanAttribute:
		case field.Place == tracestore.ResourceAttribute:
			f.resources = true
		case scan.BindingOf(field.Place).InShape || field.Place.OfTrace():
			f.whole = f.whole || field.Key != "" // facets of properties have no key
		default:
			f.whole = true
		}
	}
	return f
}

// counts holds a number of spans, and how many of them are selected.
type counts struct{ all, selected uint64 }

func (t *counts) add(o counts) {
	t.all += o.all
	t.selected += o.selected
}

// facetSource counts the values of the spans of one source by their numbers: of shape, resource,
// column and word.
type facetSource struct {
	to        *facetTotal
	plan      *scan.Plan
	shapes    []*facetShape // nil until needed
	used      []uint32      // shapes with spans
	columns   []facetColumn
	resources []counts
	byColumn  bool                // all cells of the open block were counted
	taken     map[string]struct{} // scratch: texts of an array
}

// facetShape says what to count for the spans of a shape.
type facetShape struct {
	whole  bool // spans must be assembled
	spans  counts
	varies []facetCell
}

// facetCell is a cell that is counted row by row.
type facetCell struct {
	index  int // index in Shape.Columns
	column uint32
}

func newFacetSource(to *facetTotal, p *scan.Plan) *facetSource {
	t := p.Tables
	return &facetSource{to: to, plan: p, shapes: make([]*facetShape, len(t.Shapes)), columns: make([]facetColumn, len(t.Columns)),
		resources: make([]counts, len(t.Resources))}
}

// rows counts rows of a shape. selected is a subset of set, in the same order.
func (f *facetSource) rows(x *scan.Filter, shape uint32, set, selected []int32) error {
	s := f.shape(shape)
	if s.whole {
		return f.wholeRows(x, set, selected)
	}
	n := counts{uint64(len(set)), uint64(len(selected))}
	f.to.counter.AddTotal(n.all, n.selected)
	s.spans.add(n)
	if err := f.resourceRows(x, set, selected); err != nil || len(s.varies) == 0 {
		return err
	}
	if v, ok := x.Block.(source.Vectors); ok {
		if f.byColumn {
			set = nil
		}
		return f.vectors(v, shape, s.varies, set, selected)
	}
	for _, row := range set {
		n := counts{all: 1}
		if len(selected) > 0 && selected[0] == row {
			n.selected, selected = 1, selected[1:]
		}
		for _, c := range s.varies {
			cell, err := x.Block.Cell(int(row), c.index)
			if err != nil {
				return err
			}
			if err := f.cell(c.column, cell, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// vectors counts the cells of rows of a shape, column by column. If set is nil, the cells were
// already counted, and it counts only which of them are selected.
func (f *facetSource) vectors(v source.Vectors, shape uint32, cells []facetCell, set, selected []int32) error {
	if len(set)+len(selected) == 0 {
		return nil
	}
	ranks, err := v.Ranks()
	if err != nil {
		return err
	}
	for _, c := range cells {
		if f.columns[c.column].skip(len(set)) {
			continue
		}
		list, err := v.Vector(shape, c.index)
		if err != nil {
			return err
		}
		if list.Words != nil {
			words := f.words(c.column)
			for _, row := range set {
				words[list.Words[ranks[row]]].all++
			}
			for _, row := range selected {
				words[list.Words[ranks[row]]].selected++
			}
			continue
		}
		for _, row := range set {
			f.value(c.column, list.Cell(ranks[row]), counts{all: 1})
		}
		for _, row := range selected {
			f.selectedValue(c.column, list.Cell(ranks[row]))
		}
	}
	return nil
}

// countColumns counts the cells of all rows of a block, column by column, unless one of the shapes
// has spans that must be assembled. After it, rows counts only the rest.
func (f *facetSource) countColumns(b source.Block, shapes []shapeRows) error {
	v, ok := b.(source.Vectors)
	if !ok || slices.ContainsFunc(shapes, func(s shapeRows) bool { return f.shape(s.shape).whole }) {
		return nil
	}
	columns, err := v.Columns()
	if err != nil {
		return err
	}
	f.byColumn = true
	var errs []error
	for _, c := range columns {
		if col := f.column(c.ID); col.field != nil && !col.skip(c.Cells) {
			errs = append(errs, f.countColumn(v, c))
		}
	}
	return errors.Join(errs...)
}

func (f *facetSource) countColumn(v source.Vectors, c source.BlockColumn) error {
	list, err := v.Column(c.ID)
	if err != nil {
		return err
	}
	if list.Words != nil {
		words := f.words(c.ID)
		for _, word := range list.Words {
			words[word].all++
		}
		return nil
	}
	for i := range c.Cells {
		f.value(c.ID, list.Cell(int32(i)), counts{all: 1})
	}
	return nil
}

func (f *facetSource) resourceRows(x *scan.Filter, set, selected []int32) error {
	if !f.to.needs.resources {
		return nil
	}
	if err := x.LoadResources(); err != nil {
		return err
	}
	for _, row := range set {
		id := x.Resources[row]
		if int(id) >= len(f.resources) {
			return scan.ErrReference
		}
		f.resources[id].all++
	}
	for _, row := range selected {
		f.resources[x.Resources[row]].selected++
	}
	return nil
}

func (f *facetSource) wholeRows(x *scan.Filter, set, selected []int32) error {
	for _, row := range set {
		is := len(selected) > 0 && selected[0] == row
		if is {
			selected = selected[1:]
		}
		span, err := x.Span(row)
		if err != nil {
			return err
		}
		f.to.counter.AddSpan(span, is)
	}
	return nil
}

// shape returns what to count for a shape.
func (f *facetSource) shape(id uint32) *facetShape {
	if s := f.shapes[id]; s != nil {
		return s
	}
	s := &facetShape{whole: f.to.needs.whole}
	f.shapes[id] = s
	f.used = append(f.used, id)
	columns := f.plan.Tables.Shapes[id].Columns
	for i, c := range columns {
		col := f.column(c)
		if col.extra || col.field != nil && f.repeats(columns[:i], c) {
			s.whole = true
		}
		if _, same := f.plan.Source.Constant(id, i); !same && col.field != nil && col.kind != otlpdata.ValueEmpty {
			s.varies = append(s.varies, facetCell{i, c})
		}
	}
	return s
}

// repeats reports whether a span of the shape can have several values of the field of a column.
// Equal values count once for a span.
func (f *facetSource) repeats(before []uint32, column uint32) bool {
	field := f.columns[column].field
	for _, c := range before {
		if f.columns[c].field == field {
			return true
		}
	}
	return false
}

// finish adds all counts to the facets.
func (f *facetSource) finish() {
	for _, id := range f.used {
		if s := f.shapes[id]; s.spans.all > 0 {
			f.finishShape(id, s.spans)
		}
	}
	for i := range f.columns {
		f.finishColumn(uint32(i))
	}
	for i := range f.resources {
		if n := f.resources[i]; n.all > 0 {
			f.to.counter.AddAttributes(tracestore.ResourceAttribute, f.plan.Tables.Resources[i].Attributes, n.all, n.selected)
		}
	}
}

// finishShape adds the values that all spans of a shape have in common.
func (f *facetSource) finishShape(id uint32, n counts) {
	shape := &f.plan.Tables.Shapes[id]
	f.finishProperties(shape, n)
	for i, c := range shape.Columns {
		col := &f.columns[c]
		if col.field == nil {
			continue
		}
		col.spans.add(n)
		if col.kind == otlpdata.ValueEmpty {
			col.field.counter.AddValue("", n.all, n.selected)
		} else if cell, same := f.plan.Source.Constant(id, i); same {
			_ = f.cell(c, cell, n) // the kinds of the cells were checked before
		}
	}
}

// finishProperties adds the properties that are not attributes.
func (f *facetSource) finishProperties(shape *rows.Shape, n counts) {
	for i := range tracestore.Places() {
		field := tracestore.Field{Place: tracestore.Place(i)}
		at := scan.BindingOf(field.Place)
		if !at.InShape || at.HasCell(f.plan.Tables, shape) { // counted like cells of attributes
			continue
		}
		c := f.to.counter.Field(field)
		if c == nil {
			continue
		}
		c.AddSpans(n.all, n.selected)
		for v := range field.Values(f.plan.Common(shape)) {
			c.AddValue(v.AsString(), n.all, n.selected)
		}
	}
}
