package block

import (
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// maxKept bounds the cells whose memory a closed block keeps, so that one extreme block does not occupy memory for ever.
const maxKept = 1 << 18

// placeCells finds where all cells are.
func (b *Block) placeCells() error {
	b.index.rankRows(b.l, b.heads.shapes)
	for i := range b.dir.columns {
		if err := b.index.add(b.l, b.dir.columns[i].id); err != nil {
			return err
		}
	}
	if err := b.index.lay(b.l); err != nil {
		return err
	}
	b.values.reserve(&b.index.size)
	return nil
}

// cell returns a cell of a row. The places are known.
func (b *Block) cell(row int, shape uint32, s slot, position int) (rows.Cell, error) {
	if s.group == constant {
		if c := b.l.constants[shape][position]; c != nil {
			return *c, nil
		}
		return rows.Cell{}, nil
	}
	p := &b.index.places[b.index.uses[shape]+s.group]
	v := &b.index.vectors[p.vector]
	if err := b.needVector(int(p.vector), v); err != nil {
		return rows.Cell{}, err
	}
	return b.values.get(v.form, v.from+int(p.from)+int(b.index.rank[row]*p.count+s.nth)), nil
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

// decodeVector decodes all cells of a column.
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
