package block

import (
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// maxPooledCells is the maximum capacity in cells of a block whose memory is reused, so that one
// extreme block does not occupy memory permanently.
const maxPooledCells = 1 << 18

// maxSingle is the maximum number of vectors (encoded values of one column of a shape) whose
// positions are computed one by one. Each computation visits all shapes of the block; for more
// vectors, computing all positions together is cheaper.
const maxSingle = 4

// rankRows computes the rank of each row among the rows of its shape, and indexes the columns.
func (b *Block) rankRows() error {
	b.index.rankRows(b.l, b.heads.shapes)
	for i := range b.dir.columns {
		if err := b.index.add(b.l, b.dir.columns[i].id); err != nil {
			return err
		}
	}
	return nil
}

// placeCells computes the positions of all cells.
func (b *Block) placeCells() error {
	if err := b.index.placeAll(b.l); err != nil {
		return err
	}
	b.values.reserve(&b.index.size)
	return nil
}

// cell returns a cell of a row. rankRows must be done.
func (b *Block) cell(row int, shape uint32, s slot) (rows.Cell, error) {
	if s.group == constant {
		return b.l.constant(shape, s.nth), nil
	}
	if b.expected.partial && !b.expected.has(row) {
		b.expectAll()
	}
	at, first, err := b.locate(shape, s.group)
	if err != nil {
		return rows.Cell{}, err
	}
	v := &b.index.vectors[at]
	if err := b.needVector(at, v); err != nil {
		return rows.Cell{}, err
	}
	count := b.l.groupsOf(shape)[s.group].count
	return b.values.get(v.encoding, v.from+int(first)+int(b.index.rank[row]*count+s.nth)), nil
}

// locate returns the vector of a group of a shape, and the position of its first cell in the
// vector.
func (b *Block) locate(shape uint32, group int32) (vector int, first int32, err error) {
	if b.index.placedCount >= maxSingle {
		_ = b.need(needCells) // if this fails, it may still be possible to place a single vector
	}
	if b.heads.have&havePlaces != 0 {
		p := &b.index.places[b.index.firstPlace[shape]+group]
		return int(p.vector), p.from, nil
	}
	column := b.l.groupsOf(shape)[group].column
	at := int(b.index.entries[column]) - 1
	if at < 0 {
		return 0, 0, b.damage("columns", corrupt("column %d is missing", column))
	}
	if v := &b.index.vectors[at]; !v.placed {
		if err := b.index.placeOne(b.l, v); err != nil {
			return 0, 0, b.damage("places of cells", err)
		}
		b.values.reserve(&b.index.size)
	}
	return at, b.index.firsts[b.l.shapes[shape].groups+uint32(group)], nil
}

// needVector decodes column i of the directory if it is not decoded yet. A failed attempt is not
// retried.
func (b *Block) needVector(i int, v *vector) error {
	if v.decoded || v.err != nil {
		return v.err
	}
	if err := b.decodeVector(b.dir.columns[i].entry, v); err != nil {
		v.err = b.damage(fmt.Sprintf("column %d %q", v.column, b.l.tables.Columns[v.column].Key), err)
		return v.err
	}
	v.decoded = true
	return nil
}

// decodeVector decodes all cells of a column or, for texts, only the cells of the expected rows.
func (b *Block) decodeVector(e entry, v *vector) error {
	src, err := b.part(e)
	if err != nil {
		return err
	}
	to := v.from + v.n
	switch v.encoding {
	case encodeWord:
		words := b.values.words[v.from:to]
		if err := b.decoder.Codes(src, words); err != nil {
			return err
		}
		return checkCodes(words, len(b.l.tables.Words[v.column]), "word")
	case encodeInt:
		return b.decoder.Int64s(src, b.values.ints[v.from:to])
	case encodeDouble:
		return b.decoder.Float64s(src, b.values.doubles[v.from:to])
	case encodeBool:
		return b.decoder.Bools(src, b.values.bools[v.from:to])
	}
	if b.expected.partial {
		return b.decodeSome(src, v)
	}
	return b.decoder.Strings(src, b.values.texts[v.from:to])
}

// checkCodes checks that all codes are less than n.
func checkCodes(codes []uint32, n int, what string) error {
	for _, c := range codes {
		if int64(c) >= int64(n) {
			return corrupt("%s %d is out of range, there are %d", what, c, n)
		}
	}
	return nil
}
