package scan

import (
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Binding says where a source has the values of the fields of a place.
type Binding struct {
	// InShape: all spans of a shape have the same value, unless rows of the shape have a cell for
	// it.
	InShape  bool
	InHead   bool         // in the head of each row
	Resource bool         // in attributes of the resource
	Scope    bool         // in attributes of the scope
	Computed bool         // from the whole span
	cells    []rows.Place // columns with the value in each cell
	encoded  []rows.Place // columns with any number of values in each cell
}

// bindings are the bindings by place. Properties of the trace have none.
var bindings = [...]Binding{
	tracestore.AnyAttribute: {Resource: true, Scope: true, cells: []rows.Place{rows.Attribute, rows.EventAttribute},
		encoded: []rows.Place{rows.Extra, rows.Events, rows.Links}},
	tracestore.SpanAttribute:     {cells: []rows.Place{rows.Attribute}, encoded: []rows.Place{rows.Extra}},
	tracestore.ResourceAttribute: {Resource: true},
	tracestore.ScopeAttribute:    {Scope: true},
	tracestore.EventAttribute:    {cells: []rows.Place{rows.EventAttribute}, encoded: []rows.Place{rows.Events}},
	tracestore.LinkAttribute:     {encoded: []rows.Place{rows.Links}},
	tracestore.Service:           {InShape: true},
	tracestore.Name:              {InShape: true, cells: []rows.Place{rows.Name}},
	tracestore.Kind:              {InShape: true},
	tracestore.Status:            {InShape: true},
	tracestore.StatusMessage:     {InShape: true, cells: []rows.Place{rows.StatusMessage}},
	tracestore.Duration:          {InHead: true},
	tracestore.ScopeName:         {InShape: true},
	tracestore.ScopeVersion:      {InShape: true},
	tracestore.EventName:         {cells: []rows.Place{rows.EventName}, encoded: []rows.Place{rows.Events}},
	tracestore.ParentID:          {InHead: true},
	tracestore.AnyText: {Resource: true, Scope: true,
		cells:   []rows.Place{rows.Attribute, rows.EventAttribute, rows.Name, rows.StatusMessage, rows.EventName},
		encoded: []rows.Place{rows.Extra, rows.Events, rows.Links}},
	tracestore.ErrorGroup: {Computed: true},
}

var noBinding Binding

// BindingOf returns the binding of a place.
func BindingOf(p tracestore.Place) *Binding {
	if int(p) >= len(bindings) {
		return &noBinding
	}
	return &bindings[p]
}

// HasCell reports whether rows of a shape have a cell with the value.
func (b *Binding) HasCell(t *rows.Tables, s *rows.Shape) bool {
	return len(b.cells) > 0 && slices.ContainsFunc(s.Columns, func(c uint32) bool { return b.Holds(t.Columns[c].Place) })
}

// Holds reports whether the cells of a column are values.
func (b *Binding) Holds(column rows.Place) bool { return slices.Contains(b.cells, column) }

// ColumnHolds reports whether the cells of a column are values of a field.
func ColumnHolds(f tracestore.Field, col *rows.Column) bool {
	return BindingOf(f.Place).Holds(col.Place) && (!f.Place.HasKey() || col.Key == f.Key)
}

// MayEncode reports whether values of a field may be encoded in cells of a place.
func MayEncode(f tracestore.Place, p rows.Place) bool {
	return slices.Contains(BindingOf(f).encoded, p)
}

// Common returns a span with the properties that all spans of a shape have in common. It is valid
// until the next call.
func (p *Plan) Common(s *rows.Shape) tracestore.Span {
	p.common.resource.Service = s.Service
	p.common.span.Name, p.common.span.Kind, p.common.span.StatusCode = s.Name, s.Kind, s.Status
	return tracestore.Span{Resource: &p.common.resource, Scope: &p.Tables.Scopes[s.Scope], Span: &p.common.span}
}
