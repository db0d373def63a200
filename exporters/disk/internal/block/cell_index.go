package block

import "slices"

// index locates the cells of the rows of a block. Slices indexed by shape or column are zero
// between blocks, and so need not be cleared.
type index struct {
	count        []int32  // by shape: number of rows
	firstPlace   []int32  // by shape that occurs: index of its first group in places
	shapes       []uint32 // shapes that occur, ascending
	rank         []int32  // by row: number of preceding rows of its shape
	entries      []int32  // by column: 1 + index into vectors
	vectors      []vector
	places       []place
	firsts       []int32           // by group of all shapes: position of its first cell, after placeOne
	columnGroups []int32           // by pattern, during placeOne: 1 + the group of the column; zero otherwise
	placedCount  int               // number of vectors placed by placeOne
	size         [numEncodings]int // number of cells by encoding
}

// vector is a column of the block.
type vector struct {
	column   uint32
	encoding encoding
	from, n  int  // start and number of its cells among all cells of its encoding
	placed   bool // by placeOne
	decoded  bool
	some     bool  // only the cells of expected rows are decoded
	err      error // why decoding failed
}

// place is the position of the cells of a group of a shape.
type place struct {
	vector int32
	from   int32 // position of the first cell in the vector
	count  int32 // number of cells per row
}

// rankRows counts the rows of each shape.
func (x *index) rankRows(l *Layout, shapes []uint32) {
	x.reset()
	n := len(l.tables.Shapes)
	x.count, x.firstPlace, x.entries = resize(x.count, n), resize(x.firstPlace, n), resize(x.entries, len(l.encodings))
	x.rank = resize(x.rank, len(shapes))
	highest := uint32(0)
	for i, id := range shapes {
		x.rank[i] = x.count[id]
		x.count[id]++
		highest = max(highest, id)
	}
	for id, n := range x.count[:highest+1] {
		if n > 0 {
			x.shapes = append(x.shapes, uint32(id))
		}
	}
}

// columns appends the columns that vary in the shapes of the block, in ascending order.
func (x *index) columns(l *Layout, dst []uint32) []uint32 {
	for _, id := range x.shapes {
		for _, g := range l.groupsOf(id) {
			if x.entries[g.column] == 0 {
				x.entries[g.column] = 1
				dst = append(dst, g.column)
			}
		}
	}
	for _, id := range dst {
		x.entries[id] = 0
	}
	slices.Sort(dst)
	return dst
}

// add adds a column of the block.
func (x *index) add(l *Layout, column uint32) error {
	if int(column) >= len(l.encodings) || l.encodings[column] == encodeNone {
		return corrupt("column %d is not in the layout", column)
	}
	x.vectors = append(x.vectors, vector{column: column, encoding: l.encodings[column]})
	x.entries[column] = int32(len(x.vectors))
	return nil
}

// placeAll assigns a range of a vector to each group of the shapes that occur. It fails unless the
// shapes have exactly these columns. Vectors placed by placeOne keep their places.
func (x *index) placeAll(l *Layout) error {
	total := 0
	for i := range x.vectors {
		x.vectors[i].n = 0
	}
	for _, id := range x.shapes {
		x.firstPlace[id] = int32(len(x.places))
		for _, g := range l.groupsOf(id) {
			at := x.entries[g.column] - 1
			if at < 0 {
				return corrupt("column %d is missing", g.column)
			}
			v := &x.vectors[at]
			x.places = append(x.places, place{vector: at, from: int32(v.n), count: g.count})
			n := int(x.count[id]) * int(g.count)
			v.n += n
			if total += n; total > MaxCells {
				return corrupt("more than %d cells", MaxCells)
			}
		}
	}
	for i := range x.vectors {
		v := &x.vectors[i]
		if v.n == 0 {
			return corrupt("column %d has no rows", v.column)
		}
		if !v.placed {
			v.from = x.size[v.encoding]
			x.size[v.encoding] += v.n
		}
	}
	return nil
}

// placeOne places a single vector, so that reading the cells of one column does not require the
// positions of all cells.
func (x *index) placeOne(l *Layout, v *vector) error {
	x.firsts, x.columnGroups = resize(x.firsts, l.groups), resize(x.columnGroups, len(l.patterns))
	columnGroups := l.groupsOfColumn(v.column)
	for _, u := range columnGroups {
		x.columnGroups[u.pattern] = int32(u.group) + 1
	}
	n := 0
	for _, id := range x.shapes {
		s := &l.shapes[id]
		at := x.columnGroups[s.pattern] - 1
		if at < 0 {
			continue
		}
		x.firsts[s.groups+uint32(at)] = int32(n)
		n += int(x.count[id]) * int(l.patterns[s.pattern].groups[at].count)
	}
	for _, u := range columnGroups {
		x.columnGroups[u.pattern] = 0
	}
	if n > MaxCells {
		return corrupt("more than %d cells", MaxCells)
	}
	v.placed, v.from, v.n = true, x.size[v.encoding], n
	x.placedCount++
	x.size[v.encoding] += n
	return nil
}

// reset prepares the index for another block.
func (x *index) reset() {
	for _, id := range x.shapes {
		x.count[id] = 0
	}
	for i := range x.vectors {
		x.entries[x.vectors[i].column] = 0
	}
	x.shapes, x.vectors, x.places = x.shapes[:0], x.vectors[:0], x.places[:0]
	x.placedCount, x.size = 0, [numEncodings]int{}
}

// resize returns v with n elements. Elements within the former capacity keep their values, others
// are zero.
func resize[T any](v []T, n int) []T { return slices.Grow(v[:0], n)[:n] }
