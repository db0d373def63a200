package segment

import (
	"sync"
	"sync/atomic"
)

// Cache limits the memory of open segments. When a segment loads a part of its file, other segments
// drop theirs, preferably the least recently used ones. It is safe for concurrent use.
//
// A search visits all segments one after the other. If they need slightly more memory than the
// limit, strict least-recently-used eviction would evict each segment just before its turn. The
// cache therefore evicts the least recently used of a few randomly chosen segments.
type Cache struct {
	limit   int64
	scratch scratch
	clock   atomic.Int64 // number of uses

	mu   sync.Mutex
	held map[*Segment]int64 // bytes that Drop releases
	sum  int64
}

// evictSample is the number of segments among which one is chosen for eviction.
const evictSample = 2

// NewCache returns a cache with a limit in bytes. A single segment may exceed the limit.
func NewCache(limit int64) *Cache {
	return &Cache{limit: limit, held: make(map[*Segment]int64)}
}

// sharedScratch returns the memory for reading blocks.
func (c *Cache) sharedScratch() *scratch {
	if c == nil {
		return &scratch{}
	}
	return &c.scratch
}

// touch records a use of a segment.
func (c *Cache) touch(s *Segment) {
	if c != nil {
		s.used.Store(c.clock.Add(1))
	}
}

// update accounts for a segment that loaded a part, and evicts others above the limit.
func (c *Cache) update(s *Segment) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := s.droppable()
	c.sum += now - c.held[s]
	c.held[s] = now
	for c.sum > c.limit {
		old := c.evictable(s)
		if old == nil {
			return
		}
		old.Drop()
		c.sum -= c.held[old]
		delete(c.held, old)
	}
}

// evictable returns the least recently used of a few segments other than except, or nil. Iteration
// over a map starts at a random position.
func (c *Cache) evictable(except *Segment) *Segment {
	var old *Segment
	left := evictSample
	for s := range c.held {
		if s == except {
			continue
		}
		if old == nil || s.used.Load() < old.used.Load() {
			old = s
		}
		if left--; left == 0 {
			break
		}
	}
	return old
}

// remove removes a closed segment.
func (c *Cache) remove(s *Segment) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum -= c.held[s]
	delete(c.held, s)
}

// Memory returns the number of bytes that all segments keep.
func (c *Cache) Memory() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum
}

// cached is a part of a file that is loaded when it is first needed, and then kept. Errors are not
// kept because they may be temporary.
type cached[T any] struct {
	mu    sync.Mutex // held while the part is read, so that it is read only once
	value atomic.Pointer[T]
}

// get returns the part. If necessary, it reads the part and then calls loaded.
func (c *cached[T]) get(read func() (*T, error), loaded func()) (*T, error) {
	if v := c.value.Load(); v != nil {
		return v, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.value.Load(); v != nil {
		return v, nil
	}
	v, err := read()
	if err == nil {
		c.value.Store(v)
		loaded()
	}
	return v, err
}
