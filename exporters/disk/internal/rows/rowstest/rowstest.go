// Package rowstest converts requests to rows for tests. It is simple and slow.
package rowstest

import (
	"fmt"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Interner converts spans to rows and builds the vocabulary. It is not safe for concurrent use,
// except as documented at Tables.
type Interner struct {
	// MaxWords is the maximum number of words of a column. Further texts are stored in cells.
	MaxWords int
	// MaxEvents is the maximum number of events of a span that get columns. If a span has more, all
	// of its events are encoded.
	MaxEvents int
	// NameInRow reports whether the span names of a service are in cells. nil means never.
	NameInRow func(service string) bool
	// IsExtra reports whether an attribute key has no column. nil means never.
	IsExtra func(key string) bool

	tables rows.Tables
	rows   [][]byte
	ids    map[string]uint32 // ids by the definition encoded with id 0

	record   []byte
	tenant   string
	resource *otlpdata.Resource
	scope    *otlpdata.Scope
}

// New returns an Interner with MaxWords 64 and MaxEvents 4.
func New() *Interner { return &Interner{MaxWords: 64, MaxEvents: 4, ids: map[string]uint32{}} }

// Add interns the spans of a request. It returns a record with their rows and with the definitions
// that no earlier span needed. It panics if the request cannot be encoded.
func (in *Interner) Add(b *otlpdata.Batch) (record []byte) {
	in.record, in.tenant = nil, b.Meta().Tenant
	if err := b.Walk(visitor{in}); err != nil {
		panic(err)
	}
	return in.record
}

// Tables returns the vocabulary of all requests. It grows with the next request; see
// rows.Tables.Snapshot.
func (in *Interner) Tables() *rows.Tables { return &in.tables }

// Rows returns the rows of all requests, in order.
func (in *Interner) Rows() [][]byte { return in.rows }

type visitor struct{ *Interner }

func (v visitor) Resource(r *otlpdata.Resource) error { v.resource = r; return nil }
func (v visitor) Scope(s *otlpdata.Scope) error       { v.scope = s; return nil }

// Span appends a row.
func (v visitor) Span(s *otlpdata.Span) error {
	shape := rows.Shape{Tenant: v.tenant, Service: v.resource.Service, Kind: s.Kind, Status: s.StatusCode}
	shape.Scope = v.define(len(v.tables.Scopes), func(id uint32) []byte { return rows.AppendScope(nil, id, v.scope) })
	if shape.NameInRow = v.NameInRow != nil && v.NameInRow(shape.Service); !shape.NameInRow {
		shape.Name = s.Name
	}
	var cells []rows.Cell
	shape.Columns, cells = v.cells(s, shape.NameInRow)
	h := rows.Head{TraceID: s.TraceID, SpanID: s.SpanID, ParentID: s.ParentID, Start: s.Start, End: s.End}
	service := v.define(len(v.tables.Services), func(id uint32) []byte {
		return rows.AppendService(nil, id, rows.Service{Tenant: shape.Tenant, Name: shape.Service})
	})
	h.Shape = v.define(len(v.tables.Shapes), func(id uint32) []byte { return rows.AppendShape(nil, id, service, &shape) })
	h.Resource = v.define(len(v.tables.Resources), func(id uint32) []byte {
		return rows.AppendResource(nil, id, v.tenant, v.resource)
	})
	row := rows.AppendHead(nil, &h)
	for i, c := range shape.Columns {
		row = rows.AppendCell(row, v.tables.Columns[c].Kind, cells[i])
	}
	v.rows = append(v.rows, row)
	v.record = append(rows.AppendItem(v.record, rows.TagRow, len(row)), row...)
	return nil
}

// define returns the id of a definition. If the definition is new, it gets the id next.
func (in *Interner) define(next int, definition func(id uint32) []byte) uint32 {
	key := string(definition(0))
	if id, ok := in.ids[key]; ok {
		return id
	}
	item := definition(uint32(next))
	tag, payload, _, err := rows.NextItem(item)
	if err == nil {
		_, err = in.tables.Define(tag, payload)
	}
	if err != nil {
		panic(fmt.Sprintf("rowstest: cannot decode a definition: %v", err))
	}
	in.record = append(in.record, item...)
	in.ids[key] = uint32(next)
	return uint32(next)
}

// list collects the columns and cells of a span.
type list struct {
	in      *Interner
	columns []uint32
	cells   []rows.Cell
}

func (in *Interner) cells(s *otlpdata.Span, name bool) ([]uint32, []rows.Cell) {
	l := &list{in: in}
	var extra []otlpdata.KeyValue
	var positions []int
	for i, kv := range s.Attributes {
		if in.IsExtra != nil && in.IsExtra(kv.Key) {
			extra, positions = append(extra, kv), append(positions, i)
			continue
		}
		l.add(rows.Attribute, kv.Key, kv.Value)
	}
	if len(extra) > 0 {
		l.encoded(rows.Extra, rows.AppendExtra(nil, positions, extra))
	}
	if name {
		l.add(rows.Name, "", otlpdata.StringValue(s.Name))
	}
	l.text(rows.TraceState, s.TraceState)
	l.text(rows.StatusMessage, s.StatusMessage)
	l.number(rows.Flags, s.Flags)
	l.number(rows.DroppedAttributes, s.DroppedAttributes)
	l.number(rows.DroppedEvents, s.DroppedEvents)
	l.number(rows.DroppedLinks, s.DroppedLinks)
	if len(s.Events) > in.MaxEvents {
		l.encoded(rows.Events, otlpdata.AppendEvents(nil, s.Events))
	} else {
		l.events(s)
	}
	if len(s.Links) > 0 {
		l.encoded(rows.Links, otlpdata.AppendLinks(nil, s.Links))
	}
	return l.columns, l.cells
}

func (l *list) events(s *otlpdata.Span) {
	for _, e := range s.Events {
		l.add(rows.EventTime, "", otlpdata.IntValue(int64(e.Time-s.Start)))
		l.text(rows.EventName, e.Name)
		l.number(rows.EventDropped, e.DroppedAttributes)
		for _, kv := range e.Attributes {
			l.add(rows.EventAttribute, kv.Key, kv.Value)
		}
	}
}

func (l *list) text(p rows.Place, s string) {
	if s != "" {
		l.add(p, "", otlpdata.StringValue(s))
	}
}

func (l *list) number(p rows.Place, n uint32) {
	if n != 0 {
		l.add(p, "", otlpdata.IntValue(int64(n)))
	}
}

func (l *list) encoded(p rows.Place, b []byte) {
	l.add(p, "", otlpdata.EncodedValue(otlpdata.ValueBytes, string(b)))
}

func (l *list) add(p rows.Place, key string, v otlpdata.Value) {
	t := &l.in.tables
	c := rows.Column{Place: p, Kind: v.Kind(), Key: strings.Clone(key)}
	id := l.in.define(len(t.Columns), func(id uint32) []byte { return rows.AppendColumn(nil, id, c) })
	cell := rows.CellOf(v)
	if v.Kind() == otlpdata.ValueString {
		cell = l.in.word(id, cell)
	}
	l.columns, l.cells = append(l.columns, id), append(l.cells, cell)
}

// word turns a text into a word unless the dictionary has MaxWords words.
func (in *Interner) word(column uint32, c rows.Cell) rows.Cell {
	n := len(in.tables.Words[column])
	if _, known := in.ids[string(rows.AppendWord(nil, column, 0, c.Data))]; !known && n >= in.MaxWords {
		return c
	}
	id := in.define(n, func(id uint32) []byte { return rows.AppendWord(nil, column, id, c.Data) })
	return rows.Cell{Word: id + 1}
}
