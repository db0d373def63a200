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

// peerNames finds the peers that rows call, by the rules of storequery.PeerOf. It numbers their
// names; 0 stands for none.
type peerNames struct {
	index map[string]uint32
	names []string // from 1
	full  bool     // a name was dropped

	// Of the current source.
	source source.Source
	tables *rows.Tables
	shapes []*peerShape // nil: not read yet

	cells     []rows.Cell
	assembler rows.Assembler
}

// maxPeerNames is the maximum number of names. An answer has no more edges.
const maxPeerNames = storequery.MaxPeerEdges

// peerShape says where rows of a shape have the name of their peer: in the first of texts that is a
// valid name.
type peerShape struct {
	texts   []peerText
	encoded bool // or in encoded attributes, for which a whole span must be read
}

// peerText is the value of an attribute: the same for all rows of the shape, or a cell.
type peerText struct {
	constant uint32 // number of the name; 0: a cell
	position int    // index in Shape.Columns
}

func newPeerNames() *peerNames {
	return &peerNames{index: map[string]uint32{"": 0}, names: []string{""}}
}

// enter makes src the current source.
func (n *peerNames) enter(src source.Source, t *rows.Tables) {
	n.source, n.tables, n.shapes = src, t, make([]*peerShape, len(t.Shapes))
}

// mayCallPeer reports whether rows of a shape may call a peer. It returns true for undefined
// shapes; reading their rows then returns an error.
func (n *peerNames) mayCallPeer(shape uint32) bool {
	if int(shape) >= len(n.shapes) {
		return true
	}
	s := n.shape(shape)
	return s.encoded || len(s.texts) > 0
}

// shape returns the peerShape of a shape in the vocabulary.
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

// peerOf returns the number of the peer that a row calls.
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

// number returns the number of a name, or 0 if the name is not valid or there are too many names.
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
