package block

import (
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// encodeCells writes the columns. rankRows must be done.
func (e *Encoder) encodeCells() {
	e.columns = e.index.columns(e.l, e.columns[:0])
	for _, id := range e.columns {
		e.must(e.index.add(e.l, id))
	}
	e.must(e.index.placeAll(e.l))
	e.values.reserve(&e.index.size)
	e.transpose()
	for i := range e.index.vectors {
		v := &e.index.vectors[i]
		from := len(e.body)
		e.body = e.encodeVector(e.body, v)
		e.dir.columns = append(e.dir.columns, columnEntry{v.column, e.end(from)})
	}
	e.values.reset()
}

// must panics on an error of the index. The only possible one is too many cells, because the layout
// was checked.
func (e *Encoder) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
}

// transpose moves the cells of all rows into their vectors.
func (e *Encoder) transpose() {
	x := &e.index
	for i := range e.heads {
		id := e.heads[i].Shape
		cells, rank := e.cells[e.first[i]:], int(x.rank[i])
		ordinals := e.l.patterns[e.l.shapes[id].pattern].ordinals
		places := x.places[x.firstPlace[id]:]
		for len(ordinals) > 0 {
			p := &places[0]
			v := &x.vectors[p.vector]
			at := v.from + int(p.from) + rank*int(p.count)
			for n, ordinal := range ordinals[:p.count] {
				e.values.put(v.encoding, at+n, &cells[ordinal], e.l.tables.Words[v.column])
			}
			places, ordinals = places[1:], ordinals[p.count:]
		}
	}
}

func (e *Encoder) encodeVector(dst []byte, v *vector) []byte {
	to := v.from + v.n
	switch v.encoding {
	case encodeWord:
		return e.column.HintedCodes(dst, e.values.words[v.from:to], &e.hints[v.column])
	case encodeInt:
		return e.column.Int64s(dst, e.values.ints[v.from:to])
	case encodeDouble:
		return e.column.Float64s(dst, e.values.doubles[v.from:to])
	case encodeBool:
		return e.column.Bools(dst, e.values.bools[v.from:to])
	}
	return e.column.HintedStrings(dst, e.values.texts[v.from:to], &e.hints[v.column])
}

// zone returns the zone of the block. rankRows must be done.
func (e *Encoder) zone() Zone {
	z := Zone{BlockInfo: source.BlockInfo{Rows: len(e.heads), MinStart: e.heads[0].Start, MaxStart: e.heads[0].Start}}
	e.longest = resize(e.longest, len(e.l.tables.Shapes))
	for i := range e.heads {
		h := &e.heads[i]
		e.longest[h.Shape] = max(e.longest[h.Shape], h.Duration())
		z.MinStart, z.MaxStart = min(z.MinStart, h.Start), max(z.MaxStart, h.Start)
	}
	z.Shapes = make([]source.BlockShape, len(e.index.shapes))
	for i, id := range e.index.shapes {
		z.Shapes[i] = source.BlockShape{Shape: id, Longest: source.StepOf(e.longest[id])}
		e.longest[id] = 0
	}
	return z
}
