package memory

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// position is the sort key of a row in all lists: start, then trace id, then order of arrival.
type position struct {
	start uint64
	id    otlpdata.TraceID
	seq   uint64
}

func (r *row) position() position { return position{r.start, r.trace.id, r.seq} }

func (r *row) compare(p position) int {
	if r.start != p.start {
		return cmp.Compare(r.start, p.start)
	}
	return cmp.Or(bytes.Compare(r.trace.id[:], p.id[:]), cmp.Compare(r.seq, p.seq))
}

// blockRows is the maximum number of rows in a block of a list: small enough to shift rows on
// insertion, large enough to keep the number of blocks low.
const blockRows = 256

// list is a sorted set of rows, oldest first. It consists of blocks, so that the cost of adding and
// removing does not depend on the position. Both are fastest at the ends, where spans usually
// arrive and are evicted. The zero list is empty.
type list struct {
	blocks [][]*row // none is empty
	n      int
}

// bounds returns the starts of the first and of the last row, 0 if there are none.
func (l *list) bounds() (first, last uint64) {
	if l.n == 0 {
		return 0, 0
	}
	b := l.blocks[len(l.blocks)-1]
	return l.blocks[0][0].start, b[len(b)-1].start
}

// add adds a row and reports whether it is new.
func (l *list) add(r *row) bool {
	last := len(l.blocks) - 1
	if last < 0 {
		l.blocks = append(l.blocks, append([]*row(nil), r))
		l.n++
		return true
	}
	p := r.position()
	b := l.blocks[last]
	if b[len(b)-1].compare(p) < 0 {
		l.push(r)
		l.n++
		return true
	}
	i, j := l.search(p)
	b = l.blocks[i]
	if b[j] == r {
		return false
	}
	if len(b) >= blockRows {
		i, j = l.split(i, j)
	}
	l.blocks[i] = slices.Insert(l.blocks[i], j, r)
	l.n++
	return true
}

// push appends a row.
func (l *list) push(r *row) {
	last := len(l.blocks) - 1
	if len(l.blocks[last]) < blockRows {
		l.blocks[last] = append(l.blocks[last], r)
		return
	}
	l.blocks = append(l.blocks, append(make([]*row, 0, blockRows), r))
}

// split splits block i into two and returns the new position of its index j.
func (l *list) split(i, j int) (int, int) {
	const half = blockRows / 2
	b := l.blocks[i]
	right := append(make([]*row, 0, blockRows), b[half:]...)
	clear(b[half:])
	l.blocks[i] = b[:half]
	l.blocks = slices.Insert(l.blocks, i+1, right)
	if j > half {
		return i + 1, j - half
	}
	return i, j
}

// search returns the block and the index of the first row at or after p. If there is none, it
// returns the last block and its length.
func (l *list) search(p position) (i, j int) {
	last := len(l.blocks) - 1
	switch {
	case l.blocks[0][0].compare(p) >= 0: // fast path: the oldest rows are removed first
		return 0, 0
	case l.blocks[last][0].compare(p) < 0: // fast path: new rows belong near the end
		i = last
	default:
		i = sort.Search(last, func(i int) bool {
			b := l.blocks[i]
			return b[len(b)-1].compare(p) >= 0
		})
	}
	b := l.blocks[i]
	return i, sort.Search(len(b), func(j int) bool { return b[j].compare(p) >= 0 })
}

// remove removes a row and reports whether it was in the list.
func (l *list) remove(r *row) bool {
	if l.n == 0 {
		return false
	}
	i, j := l.search(r.position())
	b := l.blocks[i]
	if j == len(b) || b[j] != r {
		return false
	}
	l.n--
	if j == 0 {
		b[0] = nil // release the row
		b = b[1:]
	} else {
		b = slices.Delete(b, j, j+1)
	}
	l.blocks[i] = b
	switch next := i + 1; {
	case len(b) == 0:
		l.blocks = slices.Delete(l.blocks, i, next)
	case next < len(l.blocks) && len(b)+len(l.blocks[next]) <= blockRows/2:
		l.blocks[i] = append(b, l.blocks[next]...)
		l.blocks = slices.Delete(l.blocks, next, next+1)
	}
	return true
}

// newest returns the newest row of a non-empty list.
func (l *list) newest() *row {
	b := l.blocks[len(l.blocks)-1]
	return b[len(b)-1]
}

// rank returns the number of rows before p.
func (l *list) rank(p position) int {
	if l.n == 0 {
		return 0
	}
	i, j := l.search(p)
	for _, b := range l.blocks[:i] {
		j += len(b)
	}
	return j
}

// below appends up to n rows before p to dst, newest first.
func (l *list) below(p position, dst []*row, n int) []*row {
	if l.n == 0 {
		return dst
	}
	i, j := l.search(p)
	for ; n > 0; n-- {
		for j == 0 {
			if i--; i < 0 {
				return dst
			}
			j = len(l.blocks[i])
		}
		j--
		dst = append(dst, l.blocks[i][j])
	}
	return dst
}
