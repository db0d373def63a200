package block

import "slices"

// fewOf is the part of the rows, one in so many, up to which their texts are put together one by one rather than with all others.
const fewOf = 4

// expected are the rows whose cells will be asked for, as far as that is known.
type expected struct {
	few   bool // only the texts of these rows are decoded
	rows  []int32
	set   []uint64 // bits, by row
	at    []int32  // scratch: places in a vector
	texts []string
}

func (x *expected) forget() { x.few = false }

func (x *expected) has(row int) bool { return x.set[row/64]>>(row%64)&1 != 0 }

// Expect says of which rows cells are going to be asked for, so that texts of others need not be put together. The rows are in any order.
// Cells of other rows may be asked for all the same, but then the work was in vain.
func (b *Block) Expect(rows []int32) {
	b.expectAll()
	if len(rows) > b.dir.rows/fewOf {
		return
	}
	x := &b.expected
	x.few, x.rows = true, append(x.rows[:0], rows...)
	x.set = resize(x.set, (b.dir.rows+63)/64)
	clear(x.set)
	for _, row := range rows {
		x.set[row/64] |= 1 << (row % 64)
	}
}

// expectAll forgets the texts of vectors of which not all are decoded.
func (b *Block) expectAll() {
	if !b.few {
		return
	}
	b.few = false
	for i := range b.index.vectors {
		if v := &b.index.vectors[i]; v.some {
			v.some, v.decoded = false, false
		}
	}
}

// decodeSome decodes the texts of the expected rows.
func (b *Block) decodeSome(src []byte, v *vector) error {
	x := &b.expected
	x.at = x.at[:0]
	for _, row := range x.rows {
		x.at = b.appendPlaces(x.at, row, v.column)
	}
	slices.Sort(x.at)
	x.texts = resize(x.texts, len(x.at))
	defer func() { clear(x.texts) }()
	if err := b.decoder.StringsAt(src, v.n, x.at, x.texts); err != nil {
		return err
	}
	for i, at := range x.at {
		b.values.texts[v.from+int(at)] = x.texts[i]
	}
	v.some = true
	return nil
}

// appendPlaces appends where the cells of a column in a row are in their vector, which was laid.
func (b *Block) appendPlaces(dst []int32, row int32, column uint32) []int32 {
	shape := b.heads.shapes[row]
	for i, g := range b.l.groupsOf(shape) {
		if g.column != column {
			continue
		}
		_, first, err := b.locate(shape, int32(i))
		if err != nil {
			return dst // the vector is there
		}
		first += b.index.rank[row] * g.count
		for nth := range g.count {
			dst = append(dst, first+nth)
		}
	}
	return dst
}
