package block

import "slices"

// index says where the cells of a block's rows are. What is indexed by shape or column is zero between blocks, and so need not be cleared.
type index struct {
	count   []int32  // by shape: rows
	uses    []int32  // by shape: where its groups begin in places, if it occurs
	shapes  []uint32 // that occur, ascending
	rank    []int32  // by row: how many rows of its shape stand before
	entries []int32  // by column: 1 + its index in vectors
	vectors []vector
	places  []place
	firsts  []int32    // by group of all shapes: where its cells begin in a vector that was laid alone
	users   []int32    // by plan: 1 + the group of the column that is laid alone; zero otherwise
	alone   int        // vectors that were laid alone
	size    [forms]int // how many cells there are of each form
}

// vector is a column of the block.
type vector struct {
	column  uint32
	form    form
	from, n int  // where its cells lie among those of its form
	alone   bool // it was laid alone
	decoded bool
	some    bool  // only the cells of expected rows are
	err     error // why it cannot be decoded
}

// place is where the cells of a group of a shape begin.
type place struct {
	vector int32
	from   int32 // in the vector
	count  int32 // of each row
}

// rankRows counts the rows of each shape.
func (x *index) rankRows(l *Layout, shapes []uint32) {
	x.forget()
	n := len(l.tables.Shapes)
	x.count, x.uses, x.entries = resize(x.count, n), resize(x.uses, n), resize(x.entries, len(l.forms))
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

// columns appends the columns that vary in the shapes that occur, ascending.
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

// add notes a column that the block has.
func (x *index) add(l *Layout, column uint32) error {
	if int(column) >= len(l.forms) || l.forms[column] == formNone {
		return corrupt("column %d is not in the layout", column)
	}
	x.vectors = append(x.vectors, vector{column: column, form: l.forms[column]})
	x.entries[column] = int32(len(x.vectors))
	return nil
}

// lay gives each group of the shapes that occur its share of a vector. The columns must be those that the shapes have. Vectors that were
// laid alone stay where they are.
func (x *index) lay(l *Layout) error {
	total := 0
	for i := range x.vectors {
		x.vectors[i].n = 0
	}
	for _, id := range x.shapes {
		x.uses[id] = int32(len(x.places))
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
		if !v.alone {
			v.from = x.size[v.form]
			x.size[v.form] += v.n
		}
	}
	return nil
}

// layAlone lays one vector. Who asks for cells of one column does not wait for the places of all.
func (x *index) layAlone(l *Layout, v *vector) error {
	x.firsts, x.users = resize(x.firsts, l.groups), resize(x.users, len(l.plans))
	users := l.usersOf(v.column)
	for _, u := range users {
		x.users[u.plan] = int32(u.group) + 1
	}
	n := 0
	for _, id := range x.shapes {
		s := &l.shapes[id]
		at := x.users[s.plan] - 1
		if at < 0 {
			continue
		}
		x.firsts[s.groups+uint32(at)] = int32(n)
		n += int(x.count[id]) * int(l.plans[s.plan].groups[at].count)
	}
	for _, u := range users {
		x.users[u.plan] = 0
	}
	if n > MaxCells {
		return corrupt("more than %d cells", MaxCells)
	}
	v.alone, v.from, v.n = true, x.size[v.form], n
	x.alone++
	x.size[v.form] += n
	return nil
}

// forget makes the index ready for another block.
func (x *index) forget() {
	for _, id := range x.shapes {
		x.count[id] = 0
	}
	for i := range x.vectors {
		x.entries[x.vectors[i].column] = 0
	}
	x.shapes, x.vectors, x.places = x.shapes[:0], x.vectors[:0], x.places[:0]
	x.alone, x.size = 0, [forms]int{}
}

// resize returns v with n elements. Those that v had room for are as they were, others are zero.
func resize[T any](v []T, n int) []T { return slices.Grow(v[:0], n)[:n] }
