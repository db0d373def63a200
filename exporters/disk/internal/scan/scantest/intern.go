package scantest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// interner converts spans to rows and chooses at random among the representations that the row
// format allows: a name in the shape or in the row, strings as words or inline, attributes with
// their own columns or in Extra, events in columns or encoded.
type interner struct {
	plain  bool // always chooses the first way, and inline strings
	rng    *rand.Rand
	tables rows.Tables
	ids    map[string]uint32 // of everything that was interned
}

// id returns the number of a thing by its description.
func (in *interner) id(description string, next int, add func()) uint32 {
	id, ok := in.ids[description]
	if !ok {
		id = uint32(next)
		in.ids[description] = id
		add()
	}
	return id
}

func (in *interner) column(c rows.Column) uint32 {
	t := &in.tables
	return in.id(fmt.Sprintf("column %d %d %q", c.Place, c.Kind, c.Key), len(t.Columns), func() {
		t.Columns, t.Words = append(t.Columns, c), append(t.Words, nil)
	})
}

func (in *interner) resource(tenant string, r *otlpdata.Resource) uint32 {
	t := &in.tables
	return in.id(fmt.Sprintf("resource %q %q %q", tenant, r.SchemaURL, r.Raw), len(t.Resources), func() {
		own, err := otlpdata.ReadResource(slices.Clone(r.Raw), r.SchemaURL)
		Must(err)
		t.Resources = append(t.Resources, rows.Resource{Tenant: tenant, Resource: own})
	})
}

func (in *interner) scope(s *otlpdata.Scope) uint32 {
	t := &in.tables
	return in.id(fmt.Sprintf("scope %q %q", s.SchemaURL, s.Raw), len(t.Scopes), func() {
		own, err := otlpdata.ReadScope(slices.Clone(s.Raw), s.SchemaURL)
		Must(err)
		t.Scopes = append(t.Scopes, own)
	})
}

// Must panics if err is not nil.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// testRow is a row. Its strings alias the batch of the span.
type testRow struct {
	head  rows.Head
	cells []rows.Cell
}

// row interns a span. It does not keep the lists of the span.
func (in *interner) row(tenant string, s tracestore.Span) testRow {
	shape := rows.Shape{Tenant: tenant, Service: s.Resource.Service, Scope: in.scope(s.Scope), Name: s.Name, Kind: s.Kind,
		Status: s.StatusCode}
	var cells []rows.Cell
	put := func(p rows.Place, key string, v otlpdata.Value) {
		c := in.column(rows.Column{Place: p, Kind: v.Kind(), Key: key})
		shape.Columns = append(shape.Columns, c)
		cells = append(cells, in.cell(c, v))
	}
	in.attributes(s, put)
	if !in.plain && in.rng.IntN(3) == 0 {
		shape.Name, shape.NameInRow = "", true
		put(rows.Name, "", otlpdata.StringValue(s.Name))
	}
	for _, f := range []struct {
		place rows.Place
		text  string
	}{{rows.TraceState, s.TraceState}, {rows.StatusMessage, s.StatusMessage}} {
		if f.text != "" {
			put(f.place, "", otlpdata.StringValue(f.text))
		}
	}
	for _, f := range []struct {
		place rows.Place
		n     uint32
	}{{rows.Flags, s.Flags}, {rows.DroppedAttributes, s.DroppedAttributes}, {rows.DroppedEvents, s.DroppedEvents},
		{rows.DroppedLinks, s.DroppedLinks}} {
		if f.n != 0 {
			put(f.place, "", otlpdata.IntValue(int64(f.n)))
		}
	}
	in.events(s, put)
	if len(s.Links) > 0 {
		put(rows.Links, "", otlpdata.EncodedValue(otlpdata.ValueBytes, string(otlpdata.AppendLinks(nil, s.Links))))
	}
	description := fmt.Sprintf("shape %+v", shape)
	id := in.id(description, len(in.tables.Shapes), func() { in.tables.Shapes = append(in.tables.Shapes, shape) })
	return testRow{rows.Head{Shape: id, Resource: in.resource(tenant, s.Resource), TraceID: s.TraceID, SpanID: s.SpanID, ParentID: s.ParentID,
		Start: s.Start, End: s.End}, cells}
}

func (in *interner) cell(column uint32, v otlpdata.Value) rows.Cell {
	if v.Kind() != otlpdata.ValueString || in.plain || in.rng.IntN(3) == 0 {
		return rows.CellOf(v)
	}
	words := &in.tables.Words[column]
	return rows.Cell{Word: 1 + in.id(fmt.Sprintf("word %d %q", column, v.Str()), len(*words), func() { *words = append(*words, v.Str()) })}
}

func (in *interner) attributes(s tracestore.Span, put func(rows.Place, string, otlpdata.Value)) {
	var positions []int
	var extra []otlpdata.KeyValue
	all := in.rng.IntN(3)
	for i, kv := range s.Attributes {
		if !in.plain && all == 0 && in.rng.IntN(2) == 0 {
			positions, extra = append(positions, i), append(extra, kv)
			continue
		}
		put(rows.Attribute, kv.Key, kv.Value)
	}
	if len(extra) > 0 {
		put(rows.Extra, "", otlpdata.EncodedValue(otlpdata.ValueBytes, string(rows.AppendExtra(nil, positions, extra))))
	}
}

func (in *interner) events(s tracestore.Span, put func(rows.Place, string, otlpdata.Value)) {
	if len(s.Events) > 0 && !in.plain && in.rng.IntN(2) == 0 {
		put(rows.Events, "", otlpdata.EncodedValue(otlpdata.ValueBytes, string(otlpdata.AppendEvents(nil, s.Events))))
		return
	}
	for _, e := range s.Events {
		put(rows.EventTime, "", otlpdata.IntValue(int64(e.Time-s.Start)))
		if e.Name != "" {
			put(rows.EventName, "", otlpdata.StringValue(e.Name))
		}
		if e.DroppedAttributes != 0 {
			put(rows.EventDropped, "", otlpdata.IntValue(int64(e.DroppedAttributes)))
		}
		for _, kv := range e.Attributes {
			put(rows.EventAttribute, kv.Key, kv.Value)
		}
	}
}
