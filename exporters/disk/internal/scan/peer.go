package scan

import (
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// PeerPlaces says where rows of a shape have the name of the peer that they call, by the rules of
// storequery.PeerOf: in the first of the cells with a valid name, or else in Constant.
type PeerPlaces struct {
	Cells    []int  // indexes in Shape.Columns
	Constant string // "" for none
	Encoded  bool   // in encoded attributes, for which a whole span must be read
}

// FindPeers returns where the rows of a shape of a source have their peers. Spans on the server
// side and unreadable rows have none.
func FindPeers(src source.Source, t *rows.Tables, id uint32) PeerPlaces {
	keys := storequery.PeerKeys()
	return findPeers(src, t, id, keys[:])
}

// FindEdgePeers is like FindPeers, by the rules of storequery.EdgePeerOf.
func FindEdgePeers(src source.Source, t *rows.Tables, id uint32) PeerPlaces {
	return findPeers(src, t, id, storequery.EdgePeerKeys(t.Shapes[id].Kind))
}

func findPeers(src source.Source, t *rows.Tables, id uint32, keys []string) (p PeerPlaces) {
	shape := &t.Shapes[id]
	if shape.Kind == otlpdata.KindServer || shape.Kind == otlpdata.KindConsumer || !Readable(t, shape) {
		return p
	}
	if slices.ContainsFunc(shape.Columns, func(c uint32) bool { return t.Columns[c].Place == rows.Extra }) {
		return PeerPlaces{Encoded: true}
	}
	for _, key := range keys {
		for i, c := range shape.Columns {
			if col := &t.Columns[c]; col.Place != rows.Attribute || col.Kind != otlpdata.ValueString || col.Key != key {
				continue
			}
			cell, constant := src.Constant(id, i)
			if !constant {
				p.Cells = append(p.Cells, i)
				continue
			}
			if name := t.Text(c, cell); storequery.IsPeerName(name) {
				p.Constant = name
				return p
			}
		}
	}
	return p
}

// Any reports whether rows of the shape may have a peer.
func (p *PeerPlaces) Any() bool { return p.Encoded || p.Constant != "" || len(p.Cells) > 0 }

// Name returns the name of the peer of a row of the shape, or "". The places must not be Encoded.
// The name may alias the block.
func (p *PeerPlaces) Name(t *rows.Tables, shape *rows.Shape, b source.Block, row int) (string, error) {
	for _, position := range p.Cells {
		cell, err := b.Cell(row, position)
		if err != nil {
			return "", err
		}
		if name := t.Text(shape.Columns[position], cell); storequery.IsPeerName(name) {
			return name, nil
		}
	}
	return p.Constant, nil
}
