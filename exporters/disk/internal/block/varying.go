package block

import "github.com/tracing-backend/tracing/exporters/disk/internal/rows"

// Varying appends the cells of a row for which the layout has no constant, and whose kind is not empty, in the order of the shape's
// columns. It is Cells for who knows the others.
func (b *Block) Varying(dst []rows.Cell, row int) ([]rows.Cell, error) {
	if err := b.need(needCells); err != nil {
		return dst, err
	}
	if b.few && !b.has(row) {
		b.expectAll()
	}
	shape, rank := b.heads.shapes[row], b.index.rank[row]
	plan := &b.l.plans[b.l.shapes[shape].plan]
	groups, ordinals := plan.groups, plan.ordinals
	places := b.index.places[b.index.uses[shape]:]
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
			dst[from+int(ordinal)] = b.values.get(v.form, at+n)
		}
		ordinals = ordinals[p.count:]
	}
	return dst, nil
}
