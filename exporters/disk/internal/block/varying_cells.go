package block

import "github.com/tracing-backend/tracing/exporters/disk/internal/rows"

// VaryingCells appends the cells of a row for which the layout has no constant and whose kind is
// not empty, in the order of the columns of the shape.
func (b *Block) VaryingCells(dst []rows.Cell, row int) ([]rows.Cell, error) {
	if err := b.need(needCells); err != nil {
		return dst, err
	}
	if b.expected.partial && !b.expected.has(row) {
		b.expectAll()
	}
	shape, rank := b.heads.shapes[row], b.index.rank[row]
	pattern := &b.l.patterns[b.l.shapes[shape].pattern]
	groups, ordinals := pattern.groups, pattern.ordinals
	places := b.index.places[b.index.firstPlace[shape]:]
	from := len(dst)
	dst = extend(dst, from+len(ordinals))
	for i := range groups {
		p := &places[i]
		v := &b.index.vectors[p.vector]
		if !v.decoded {
			if err := b.needVector(int(p.vector), v); err != nil {
				return dst[:from], err
			}
		}
		at := v.from + int(p.from+rank*p.count)
		for n, ordinal := range ordinals[:p.count] {
			dst[from+int(ordinal)] = b.values.get(v.encoding, at+n)
		}
		ordinals = ordinals[p.count:]
	}
	return dst, nil
}
