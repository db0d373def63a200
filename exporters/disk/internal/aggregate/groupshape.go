package aggregate

import (
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// shape returns the groupShape of a shape.
func (g *groupSource) shape(id uint32) *groupShape {
	if s := g.shapes[id]; s != nil {
		return s
	}
	s := &groupShape{sameKey: true}
	g.shapes[id] = s
	for i, f := range g.to.want.By {
		var one bool
		if s.fields[i], one = g.field(id, i, f); !one {
			s.whole = true
		}
		s.encoded = s.encoded || len(s.fields[i].encoded) > 0
		s.sameKey = s.sameKey && !s.encoded && !s.fields[i].varies && !s.fields[i].resource
	}
	var one bool
	if s.number, one = g.numberOf(id); !one {
		s.whole = true
	}
	if g.to.want.Adjusted && slices.ContainsFunc(g.plan.Tables.Shapes[id].Columns, g.isTraceState) {
		s.whole = true
	}
	return s
}

func (g *groupSource) isTraceState(column uint32) bool {
	return g.plan.Tables.Columns[column].Place == rows.TraceState
}

// numberOf returns where the spans of a shape have the measured number. ok is false if it is found
// only in whole spans.
func (g *groupSource) numberOf(id uint32) (out groupNumber, ok bool) {
	shape, f := &g.plan.Tables.Shapes[id], g.to.want.Of
	at := scan.BindingOf(f.Place)
	switch {
	case g.to.want.Measure == tracestore.MeasureNone, f.Parent: // the parent is not known
		return out, true
	case f.Place == tracestore.Duration:
		return groupNumber{duration: true}, true
	case at.InHead || at.Computed:
		return out, false
	case at.InShape && !at.HasCell(g.plan.Tables, shape):
		return out, true // a text
	case at.Scope && hasKey(g.plan.Tables.Scopes[shape.Scope].Attributes, f.Key):
		return out, false
	case at.Resource && g.numberInResource:
		return out, false
	}
	found := false
	for i, c := range shape.Columns {
		col := &g.plan.Tables.Columns[c]
		switch {
		case scan.MayEncode(f.Place, col.Place), col.Place == rows.EventTime && f.Place == tracestore.EventName:
			return out, false
		case !scan.ColumnHolds(f, col):
			continue
		case found:
			return out, false
		}
		found = true
		if cell, same := g.plan.Source.Constant(id, i); same {
			out.constant, out.hasConstant = tracestore.MeasuredNumber(g.plan.Value(c, cell))
		} else {
			out.varies, out.cell = col.Kind == otlpdata.ValueInt || col.Kind == otlpdata.ValueDouble, facetCell{i, c}
		}
	}
	return out, true
}

// field returns where the spans of a shape have the value of a field. ok is false if they may have
// several values, or if the value is found only in whole spans.
func (g *groupSource) field(id uint32, number int, f tracestore.Field) (out groupField, ok bool) {
	shape, at := &g.plan.Tables.Shapes[id], scan.BindingOf(f.Place)
	switch {
	case f.Parent:
		return out, true // no value: the parent is not known
	case at.InHead || at.Computed:
		return out, false
	case at.InShape && !at.HasCell(g.plan.Tables, shape):
		return groupField{constant: g.common(shape, f)}, true
	}
	out, ok = g.attribute(id, f)
	if !ok || at.Scope && hasKey(g.plan.Tables.Scopes[shape.Scope].Attributes, f.Key) {
		return out, false
	}
	if at.Resource && g.loadResources(number, f.Key) {
		return groupField{resource: true, encoded: out.encoded}, !out.varies && out.constant == 0
	}
	return out, true
}

// common returns the number of a property that all spans of a shape have in common.
func (g *groupSource) common(shape *rows.Shape, f tracestore.Field) (n valueNumber) {
	for v := range f.Values(g.plan.Common(shape)) {
		n = g.number(v.AsString())
	}
	return n
}

// attribute is like field, for values in cells.
func (g *groupSource) attribute(id uint32, f tracestore.Field) (out groupField, ok bool) {
	columns := g.plan.Tables.Shapes[id].Columns
	found := false
	for i, c := range columns {
		col := &g.plan.Tables.Columns[c]
		if scan.MayEncode(f.Place, col.Place) {
			out.encoded = append(out.encoded, i)
		}
		if col.Place == rows.EventTime && f.Place == tracestore.EventName {
			return out, false
		}
		if !scan.ColumnHolds(f, col) {
			continue
		}
		if found {
			return out, false
		}
		found = true
		if cell, same := g.plan.Source.Constant(id, i); same {
			var err error
			if out.constant, err = g.cell(c, cell); err != nil {
				return out, false
			}
		} else if col.Kind == otlpdata.ValueEmpty {
			out.constant = g.number("")
		} else {
			out.varies, out.cell = true, facetCell{i, c}
		}
	}
	return out, true
}

// loadResources looks up an attribute in all resources, and reports whether any of them has it.
func (g *groupSource) loadResources(number int, key string) (some bool) {
	list := &g.resources[number]
	if *list == nil {
		*list = make([]valueNumber, len(g.plan.Tables.Resources))
		kept := g.kept
		for i := range *list {
			(*list)[i] = g.resource(i, key)
		}
		g.kept = kept // groupMemory includes them; starting over would not free them
	}
	return slices.ContainsFunc(*list, func(n valueNumber) bool { return n > 0 })
}

// resource returns the value number of a resource.
func (g *groupSource) resource(id int, key string) (n valueNumber) {
	for _, kv := range g.plan.Tables.Resources[id].Attributes {
		if kv.Key != key {
			continue
		}
		if n > 0 {
			return severalValues
		}
		n = g.number(kv.Value.AsString())
	}
	return n
}

func hasKey(kvs []otlpdata.KeyValue, key string) bool {
	return slices.ContainsFunc(kvs, func(kv otlpdata.KeyValue) bool { return kv.Key == key })
}
