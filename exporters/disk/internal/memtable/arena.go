package memtable

import (
	"sync"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

const (
	defaultChunk = 1 << 20
	defaultKeep  = 128 // maximum number of free chunks: the rows of one full table
)

// Pool recycles the chunks of released tables to relieve the garbage collector. It is safe for
// concurrent use.
type Pool struct {
	chunk, keep int

	mu   sync.Mutex
	free [][]byte
}

// NewPool returns a pool of chunks of the given size in bytes that keeps at most keep free chunks.
// Zero selects 1 MiB and 128.
func NewPool(chunk, keep int) *Pool {
	if chunk <= 0 {
		chunk = defaultChunk
	}
	if keep <= 0 {
		keep = defaultKeep
	}
	return &Pool{chunk: chunk, keep: keep}
}

func (p *Pool) get() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		return c
	}
	return make([]byte, p.chunk)
}

// put returns an unused chunk to the pool.
func (p *Pool) put(c []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(c) == p.chunk && len(p.free) < p.keep {
		p.free = append(p.free, c)
	}
}

// arena is append-only memory. Items do not move.
type arena struct {
	pool   *Pool
	chunks [][]byte // each with its full length
	ends   []int    // by chunk: number of used bytes
	size   int64    // total length of all chunks
	// written is the total size of all items in bytes.
	written int64
}

// ref locates an item: chunk << 32 | offset.
type ref uint64

func (r ref) in(chunks [][]byte) []byte { return chunks[r>>32][uint32(r):] }

// put appends an item with the given payload. The result aliases the arena.
func (a *arena) put(tag rows.Tag, payload []byte) (at ref, stored []byte) {
	var head [rows.MaxHead]byte
	h := rows.AppendItem(head[:0], tag, len(payload))
	at, dst := a.alloc(len(h) + len(payload))
	copy(dst, h)
	stored = dst[len(h):]
	copy(stored, payload)
	return at, stored
}

// alloc allocates n bytes in one chunk.
func (a *arena) alloc(n int) (ref, []byte) {
	last := len(a.chunks) - 1
	if last < 0 || len(a.chunks[last])-a.ends[last] < n {
		var chunk []byte
		if n <= a.pool.chunk {
			chunk = a.pool.get()
		} else {
			chunk = make([]byte, n)
		}
		a.chunks, a.ends = append(a.chunks, chunk), append(a.ends, 0)
		a.size += int64(len(chunk))
		last++
	}
	from := a.ends[last]
	a.ends[last] = from + n
	a.written += int64(n)
	return ref(last)<<32 | ref(from), a.chunks[last][from : from+n : from+n]
}

// mark is a position between two items.
type mark struct{ chunk, offset int }

func (a *arena) mark() mark {
	if len(a.chunks) == 0 {
		return mark{}
	}
	last := len(a.chunks) - 1
	return mark{last, a.ends[last]}
}

// between returns the bytes between two marks.
func (a *arena) between(from, to mark) [][]byte {
	parts := make([][]byte, 0, to.chunk-from.chunk+1)
	for i := from.chunk; i <= to.chunk && i < len(a.chunks); i++ {
		end := a.ends[i]
		if i == to.chunk {
			end = to.offset
		}
		if end > from.offset {
			parts = append(parts, a.chunks[i][from.offset:end:end])
		}
		from.offset = 0
	}
	return parts
}

// release returns the chunks to the pool.
func (a *arena) release() {
	for _, c := range a.chunks {
		a.pool.put(c)
	}
	a.chunks, a.ends, a.size = nil, nil, 0
}
