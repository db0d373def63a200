package graph

import (
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// peerNames finds the peers that rows call, by the rules of storequery.PeerOf or EdgePeerOf. It
// numbers their names; 0 means none.
type peerNames struct {
	index map[string]uint32
	names []string // from 1
	full  bool     // a name was dropped
	// How the peers of shapes and of spans are found.
	find func(source.Source, *rows.Tables, uint32) scan.PeerPlaces
	peer func(*otlpdata.Span) string

	// Of the current source.
	source source.Source
	tables *rows.Tables
	shapes []*peerShape // nil: not read yet

	cells     []rows.Cell
	assembler rows.Assembler
}

// maxPeerNames is the maximum number of names, which is also the maximum number of edges in a
// result.
const maxPeerNames = storequery.MaxPeerEdges

// peerShape says where rows of a shape have the name of their peer.
type peerShape struct {
	scan.PeerPlaces
	constant uint32 // number of PeerPlaces.Constant
}

func newPeerNames() *peerNames {
	return &peerNames{index: map[string]uint32{"": 0}, names: []string{""}, find: scan.FindPeers, peer: storequery.PeerOf}
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
	return n.shape(shape).Any()
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
	s := &peerShape{PeerPlaces: n.find(n.source, n.tables, id)}
	s.constant = n.number(s.Constant)
	return s
}

// peerOf returns the number of the peer that a row calls.
func (n *peerNames) peerOf(b source.Block, row int, shape uint32) (uint32, error) {
	s := n.shape(shape)
	switch {
	case s.Encoded:
		var h rows.Head
		span, err := scan.Assemble(n.tables, b, row, &h, &n.cells, &n.assembler)
		if err != nil {
			return 0, err
		}
		return n.number(n.peer(span)), nil
	case len(s.Cells) == 0:
		return s.constant, nil
	}
	name, err := s.Name(n.tables, &n.tables.Shapes[shape], b, row)
	return n.number(name), err
}

// number returns the number of a name, or 0 if the name is invalid or there are too many names.
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
