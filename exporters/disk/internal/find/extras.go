package find

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// extrasReader reads the fields that outlines have in addition to summaries: hosts, peers, links
// and events. Of each row it reads only the cells for these fields.
type extrasReader struct {
	hosts storequery.Hosts
	size  int // bytes of all extras

	// Of the current source.
	source source.Source
	tables *rows.Tables
	shapes []*extraPlaces // nil: not read yet
	host   []int64        // by resource: its number, -1: not read yet

	texts     map[string]string
	decoder   otlpdata.SpanReader
	cells     []rows.Cell
	assembler rows.Assembler
	chunk     []tracestore.SpanExtras
	events    []tracestore.SpanEvent
}

// extraPlaces says in which cells rows of a shape have extras.
type extraPlaces struct {
	peer          scan.PeerPlaces
	events        []eventPlace
	encodedEvents int // index in Shape.Columns, -1 for none
	links         int
}

// eventPlace is where an event of a row is, by indexes in Shape.Columns.
type eventPlace struct {
	time int
	name int // -1: the name is empty
}

// enter makes src the current source.
func (x *extrasReader) enter(src source.Source, t *rows.Tables) {
	if x.source == src {
		return
	}
	x.source, x.tables, x.shapes = src, t, make([]*extraPlaces, len(t.Shapes))
	x.host = slices.Repeat([]int64{-1}, len(t.Resources))
}

// add sets the fields of s that only outlines have, for a row with the head h. The shape of the row
// is defined.
func (x *extrasReader) add(s *tracestore.SummarySpan, b source.Block, row int, h *rows.Head) error {
	if int(h.Resource) >= len(x.tables.Resources) {
		return scan.ErrReference
	}
	host := &x.host[h.Resource]
	if *host < 0 {
		*host = int64(x.hosts.Number(&x.tables.Resources[h.Resource].Resource))
	}
	s.Host, s.Reversed = uint32(*host), h.End < h.Start
	p := x.shapes[h.Shape]
	if p == nil {
		p = x.places(h.Shape)
		x.shapes[h.Shape] = p
	}
	if !p.peer.Any() && len(p.events) == 0 && p.encodedEvents < 0 && p.links < 0 {
		return nil
	}
	extras, err := x.read(p, b, row, h)
	if err == nil && (extras.Peer != "" || extras.Links > 0 || len(extras.Events) > 0) {
		s.Extras = x.keep(extras)
	}
	return err
}

// places returns where rows of a shape have extras. Unreadable shapes have none.
func (x *extrasReader) places(id uint32) *extraPlaces {
	p := &extraPlaces{encodedEvents: -1, links: -1}
	shape := &x.tables.Shapes[id]
	if !scan.Readable(x.tables, shape) {
		return p
	}
	p.peer = scan.FindPeers(x.source, x.tables, id)
	for i, c := range shape.Columns {
		switch x.tables.Columns[c].Place {
		case rows.EventTime:
			p.events = append(p.events, eventPlace{time: i, name: -1})
		case rows.EventName:
			if n := len(p.events); n > 0 {
				p.events[n-1].name = i
			}
		case rows.Events:
			p.encodedEvents = i
		case rows.Links:
			p.links = i
		}
	}
	return p
}

// read reads the extras of a row. Its events are valid until the next call of keep.
func (x *extrasReader) read(p *extraPlaces, b source.Block, row int, h *rows.Head) (extras tracestore.SpanExtras, err error) {
	shape := &x.tables.Shapes[h.Shape]
	if extras.Peer, err = x.peer(p, shape, b, row); err != nil {
		return extras, err
	}
	if p.links >= 0 {
		s, err := x.encoded(b, row, p.links)
		if err != nil {
			return extras, err
		}
		extras.Links = len(s.Links)
	}
	extras.Events, err = x.readEvents(p, shape, b, row, h.Start)
	return extras, err
}

func (x *extrasReader) peer(p *extraPlaces, shape *rows.Shape, b source.Block, row int) (string, error) {
	if !p.peer.Encoded {
		name, err := p.peer.Name(x.tables, shape, b, row)
		return x.text(name), err
	}
	var h rows.Head
	span, err := scan.Assemble(x.tables, b, row, &h, &x.cells, &x.assembler)
	if err != nil {
		return "", err
	}
	return x.text(storequery.PeerOf(span)), nil
}

// readEvents reads the events of a row into x.events, after the kept ones.
func (x *extrasReader) readEvents(
	p *extraPlaces, shape *rows.Shape, b source.Block, row int, start uint64,
) ([]tracestore.SpanEvent, error) {
	if need := len(p.events); cap(x.events)-len(x.events) < need {
		x.events = make([]tracestore.SpanEvent, 0, max(need, extrasChunk))
	}
	list := x.events[len(x.events):]
	for _, e := range p.events {
		at, err := b.Cell(row, e.time)
		if err != nil {
			return nil, err
		}
		event := tracestore.SpanEvent{Time: start + at.Num}
		if e.name >= 0 {
			cell, err := b.Cell(row, e.name)
			if err != nil {
				return nil, err
			}
			event.Name = x.text(x.tables.Text(shape.Columns[e.name], cell))
		}
		list = append(list, event)
	}
	if p.encodedEvents < 0 {
		return list, nil
	}
	s, err := x.encoded(b, row, p.encodedEvents)
	if err != nil {
		return nil, err
	}
	for i := range s.Events {
		list = append(list, tracestore.SpanEvent{Time: s.Events[i].Time, Name: x.text(s.Events[i].Name)})
	}
	return list, nil
}

// encoded decodes a cell with events or links.
func (x *extrasReader) encoded(b source.Block, row, position int) (*otlpdata.Span, error) {
	cell, err := b.Cell(row, position)
	if err != nil {
		return nil, err
	}
	return x.decoder.Read([]byte(cell.Data))
}

// text returns a copy of a text. Equal texts, which are frequent, share a copy.
func (x *extrasReader) text(s string) string {
	if s == "" {
		return ""
	}
	known, ok := x.texts[s]
	if !ok {
		if x.texts == nil {
			x.texts = make(map[string]string)
		}
		known = strings.Clone(s)
		x.texts[known] = known
	}
	return known
}

// extrasChunk is the number of extras, or of events, that are allocated together.
const extrasChunk = 512

// keep returns extras that stay valid.
func (x *extrasReader) keep(extras tracestore.SpanExtras) *tracestore.SpanExtras {
	n := len(extras.Events)
	if n <= cap(x.events)-len(x.events) { // they are where readEvents put them
		x.events = x.events[:len(x.events)+n]
	}
	extras.Events = extras.Events[:n:n]
	if n == 0 {
		extras.Events = nil
	}
	if len(x.chunk) == cap(x.chunk) {
		x.chunk = make([]tracestore.SpanExtras, 0, extrasChunk)
	}
	x.chunk = append(x.chunk, extras)
	x.size += extras.Size()
	return &x.chunk[len(x.chunk)-1]
}
