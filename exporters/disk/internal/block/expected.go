package block

import "slices"

// maxExpectedShare limits the expected rows to 1/maxExpectedShare of all rows. With more, decoding
// all texts is cheaper than decoding single ones.
const maxExpectedShare = 4

// expectedRows holds the rows whose cells will be read, if known.
type expectedRows struct {
	partial bool // only the texts of these rows are decoded
	rows    []int32
	set     []uint64 // bit set of rows
	at      []int32  // scratch: positions in a vector
	texts   []string
}

func (x *expectedRows) reset() { x.partial = false }

func (x *expectedRows) has(row int) bool { return x.set[row/64]>>(row%64)&1 != 0 }

// Expect announces the rows whose cells will be read, in any order, so that texts of other rows
// need not be decoded. Cells of other rows may still be read; this discards the texts that were
// decoded for the expected rows.
func (b *Block) Expect(rows []int32) {
	b.expectAll()
	if len(rows) > b.dir.rows/maxExpectedShare {
		return
	}
	x := &b.expected
	x.partial, x.rows = true, append(x.rows[:0], rows...)
	x.set = resize(x.set, (b.dir.rows+63)/64)
	clear(x.set)
	for _, row := range rows {
		x.set[row/64] |= 1 << (row % 64)
	}
}

// expectAll ends the effect of Expect and discards vectors that are not completely decoded.
func (b *Block) expectAll() {
	if !b.expected.partial {
		return
	}
	b.expected.partial = false
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

// appendPlaces appends the positions of a row's cells of a column in their vector, which must be
// placed.
func (b *Block) appendPlaces(dst []int32, row int32, column uint32) []int32 {
	shape := b.heads.shapes[row]
	for i, g := range b.l.groupsOf(shape) {
		if g.column != column {
			continue
		}
		_, first, err := b.locate(shape, int32(i))
		if err != nil {
			return dst // cannot happen for a placed vector
		}
		first += b.index.rank[row] * g.count
		for nth := range g.count {
			dst = append(dst, first+nth)
		}
	}
	return dst
}
