package graph

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// peerNames tells which peers rows call, as storequery.PeerOf does. Names have numbers; 0 is none.
type peerNames struct {
	index map[string]uint32
	names []string // from 1
	full  bool     // there was no room for a name

	// Of the source at hand.
	source source.Source
	tables *rows.Tables
	shapes []*peerShape // nil: not asked for yet

	cells     []rows.Cell
	assembler rows.Assembler
}

// maxPeerNames is how many names are told apart. More do not fit into an answer.
const maxPeerNames = storequery.MaxPeerEdges

// peerShape is where the rows of a shape name their peers: in the first of texts that may be a name.
type peerShape struct {
	texts   []peerText
	encoded bool // or in attributes that are encoded, so that a whole span is to be read
}

// peerText is the value of an attribute: the same for all rows of the shape, or a cell.
type peerText struct {
	constant uint32 // number of a name; 0: a cell
	position int    // in Shape.Columns
}

func newPeerNames() *peerNames {
	return &peerNames{index: map[string]uint32{"": 0}, names: []string{""}}
}

// enter makes src the source whose rows are asked about.
func (n *peerNames) enter(src source.Source, t *rows.Tables) {
	n.source, n.tables, n.shapes = src, t, make([]*peerShape, len(t.Shapes))
}

// may reports whether rows of a shape may call a peer. Those of a shape that is not defined may: their reader will report it.
func (n *peerNames) mayCallPeer(shape uint32) bool {
	if int(shape) >= len(n.shapes) {
		return true
	}
	s := n.shape(shape)
	return s.encoded || len(s.texts) > 0
}

// shape returns what is known of a shape that the tables have.
func (n *peerNames) shape(id uint32) *peerShape {
	s := n.shapes[id]
	if s == nil {
		s = n.learn(id)
		n.shapes[id] = s
	}
	return s
}

func (n *peerNames) learn(id uint32) *peerShape {
	s := &peerShape{}
	shape := &n.tables.Shapes[id]
	if shape.Kind == otlpdata.KindServer || shape.Kind == otlpdata.KindConsumer || !scan.Readable(n.tables, shape) {
		return s
	}
	s.encoded = slices.ContainsFunc(shape.Columns, func(c uint32) bool { return n.tables.Columns[c].Place == rows.Extra })
	if s.encoded {
		return s
	}
	for _, key := range storequery.PeerKeys() {
		for i, c := range shape.Columns {
			if col := &n.tables.Columns[c]; col.Place != rows.Attribute || col.Kind != otlpdata.ValueString || col.Key != key {
				continue
			}
			cell, constant := n.source.Constant(id, i)
			if !constant {
				s.texts = append(s.texts, peerText{position: i})
				continue
			}
			if name := n.number(n.tables.Text(c, cell)); name > 0 {
				s.texts = append(s.texts, peerText{constant: name})
				return s
			}
		}
	}
	return s
}

// of returns the number of the peer that a row calls.
func (n *peerNames) peerOf(b source.Block, row int, shape uint32) (uint32, error) {
	s := n.shape(shape)
	if s.encoded {
		var h rows.Head
		span, err := scan.Assemble(n.tables, b, row, &h, &n.cells, &n.assembler)
		if err != nil {
			return 0, err
		}
		return n.number(storequery.PeerOf(span)), nil
	}
	columns := n.tables.Shapes[shape].Columns
	for _, t := range s.texts {
		if t.constant > 0 {
			return t.constant, nil
		}
		cell, err := b.Cell(row, t.position)
		if err != nil {
			return 0, err
		}
		if name := n.tables.Text(columns[t.position], cell); storequery.IsPeerName(name) {
			return n.number(name), nil
		}
	}
	return 0, nil
}

// number returns the number of a name, and 0 where it is none or there is no room for it.
func (n *peerNames) number(name string) uint32 {
	number, known := n.index[name]
	switch {
	case known || !storequery.IsPeerName(name):
		return number
	case len(n.names) > maxPeerNames:
		n.full = true
		return 0
	}
	number = uint32(len(n.names))
	name = strings.Clone(name)
	n.names = append(n.names, name)
	n.index[name] = number
	return number
}
