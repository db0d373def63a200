package block

import (
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// maxKept bounds the cells whose memory a closed block keeps, so that one extreme block does not occupy memory for ever.
const maxKept = 1 << 18

// mostAlone is how many vectors are laid alone. Each takes a look at all shapes of the block: to lay all at once costs as much as to lay
// some.
const mostAlone = 4

// rankRows finds out what columns there are, and which row of its shape each row is.
func (b *Block) rankRows() error {
	b.index.rankRows(b.l, b.heads.shapes)
	for i := range b.dir.columns {
		if err := b.index.add(b.l, b.dir.columns[i].id); err != nil {
			return err
		}
	}
	return nil
}

// placeCells finds where all cells are.
func (b *Block) placeCells() error {
	if err := b.index.lay(b.l); err != nil {
		return err
	}
	b.values.reserve(&b.index.size)
	return nil
}

// cell returns a cell of a row. The rows are ranked.
func (b *Block) cell(row int, shape uint32, s slot) (rows.Cell, error) {
	if s.group == constant {
		return b.l.constant(shape, s.nth), nil
	}
	if b.few && !b.has(row) {
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
	return b.values.get(v.form, v.from+int(first)+int(b.index.rank[row]*count+s.nth)), nil
}

// locate returns the vector of a group of a shape, and where the group's cells begin in it.
func (b *Block) locate(shape uint32, group int32) (vector int, first int32, err error) {
	if b.index.alone >= mostAlone {
		_ = b.need(needCells) // where the places of all are damaged, that of one may still be found
	}
	if b.heads.have&havePlaces != 0 {
		p := &b.index.places[b.index.uses[shape]+group]
		return int(p.vector), p.from, nil
	}
	column := b.l.groupsOf(shape)[group].column
	at := int(b.index.entries[column]) - 1
	if at < 0 {
		return 0, 0, b.damage("columns", corrupt("column %d is missing", column))
	}
	if v := &b.index.vectors[at]; !v.alone {
		if err := b.index.layAlone(b.l, v); err != nil {
			return 0, 0, b.damage("places of cells", err)
		}
		b.values.reserve(&b.index.size)
	}
	return at, b.index.firsts[b.l.shapes[shape].groups+uint32(group)], nil
}

// needVector is need for a column, which is entry i of the directory.
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

// decodeVector decodes all cells of a column, or the texts of the expected rows.
func (b *Block) decodeVector(e entry, v *vector) error {
	src, err := b.part(e)
	if err != nil {
		return err
	}
	to := v.from + v.n
	switch v.form {
	case formWord:
		words := b.values.words[v.from:to]
		if err := b.decoder.Codes(src, words); err != nil {
			return err
		}
		return checkCodes(words, len(b.l.tables.Words[v.column]), "word")
	case formInt:
		return b.decoder.Int64s(src, b.values.ints[v.from:to])
	case formDouble:
		return b.decoder.Float64s(src, b.values.doubles[v.from:to])
	case formBool:
		return b.decoder.Bools(src, b.values.bools[v.from:to])
	}
	if b.few {
		return b.decodeSome(src, v)
	}
	return b.decoder.Strings(src, b.values.texts[v.from:to])
}

// checkCodes checks that all codes are below n.
func checkCodes(codes []uint32, n int, what string) error {
	for _, c := range codes {
		if int64(c) >= int64(n) {
			return corrupt("%s %d of %d", what, c, n)
		}
	}
	return nil
}
