package find

import (
	"bytes"
	"cmp"
	"container/heap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// match is a matching span, by its position in the order of results.
type match struct {
	start uint64
	trace otlpdata.TraceID
}

// compare returns a positive number if m is newer than o.
func (m match) compare(o match) int {
	return cmp.Or(cmp.Compare(m.start, o.start), bytes.Compare(m.trace[:], o.trace[:]))
}

// isAfter reports whether m follows a cursor in the order of results, that is, is older.
func (m match) isAfter(c tracestore.Cursor) bool {
	return !c.Set || m.compare(match{c.Start, c.ID}) < 0
}

// pendingBlock is a block whose rows up to the start newest were not examined yet.
type pendingBlock struct {
	src, block int
	info       *source.BlockInfo
	newest     uint64
	again      bool // newer rows were examined
}

// pendingBlocks is a heap with the block with the newest rows on top.
type pendingBlocks []pendingBlock

func (u pendingBlocks) Len() int           { return len(u) }
func (u pendingBlocks) Less(i, j int) bool { return u[i].newest > u[j].newest }
func (u pendingBlocks) Swap(i, j int)      { u[i], u[j] = u[j], u[i] }
func (u *pendingBlocks) Push(x any)        { *u = append(*u, x.(pendingBlock)) }

func (u *pendingBlocks) Pop() any {
	last := len(*u) - 1
	x := (*u)[last]
	*u = (*u)[:last]
	return x
}

// matchLists is a heap of lists of matches with the newest match on top. No list is empty.
type matchLists [][]match

func (l matchLists) Len() int           { return len(l) }
func (l matchLists) Less(i, j int) bool { return l[i][0].compare(l[j][0]) > 0 }
func (l matchLists) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *matchLists) Push(x any)        { *l = append(*l, x.([]match)) }

func (l *matchLists) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return x
}

// next removes and returns the newest match.
func (l *matchLists) next() match {
	top := (*l)[0]
	m := top[0]
	if (*l)[0] = top[1:]; len(top) > 1 {
		heap.Fix(l, 0)
	} else {
		heap.Pop(l)
	}
	return m
}

// rowStart is a row with its start time.
type rowStart struct {
	start uint64
	row   int32
}

// rowHeap is a heap of rows with the newest on top.
type rowHeap []rowStart

func (r rowHeap) Len() int           { return len(r) }
func (r rowHeap) Less(i, j int) bool { return r[i].start > r[j].start }
func (r rowHeap) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *rowHeap) Push(x any)        { *r = append(*r, x.(rowStart)) }

func (r *rowHeap) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	*r = (*r)[:last]
	return x
}

// drop removes the newest row.
func (r *rowHeap) drop() {
	last := len(*r) - 1
	(*r)[0] = (*r)[last]
	if *r = (*r)[:last]; last > 0 {
		heap.Fix(r, 0)
	}
}
