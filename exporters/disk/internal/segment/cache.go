package segment

import (
	"sync"
	"sync/atomic"
)

// Cache bounds what open segments keep in memory together: when one reads a part of its file that it keeps, others forget theirs, those that
// were not used for longest rather than others. Safe for concurrent use.
//
// A search goes through all segments, one after the other. Where these need a little more than the limit, forgetting always the one that was
// not used for longest would forget each just before its turn comes. So the oldest of a few is taken, whichever these are: the others stay.
type Cache struct {
	limit   int64
	scratch scratch
	clock   atomic.Int64 // counts uses

	mu   sync.Mutex
	held map[*Segment]int64 // bytes
	sum  int64
	// What segments keep until they are closed, in bytes: small things that save reading large ones.
	pinned    map[*Segment]int64
	pinnedSum int64
}

// pinnable is the part of the limit that may be pinned: one of so many.
const pinnable = 4

// candidates is how many segments are looked at to find one that forgets.
const candidates = 2

// NewCache returns a cache of so many bytes. One segment alone may exceed them.
func NewCache(limit int64) *Cache {
	return &Cache{limit: limit, held: make(map[*Segment]int64), pinned: make(map[*Segment]int64)}
}

// scratchOf returns the memory for reading blocks.
func (c *Cache) scratchOf() *scratch {
	if c == nil {
		return &scratch{}
	}
	return &c.scratch
}

// use notes that a segment is in use. It is called for every question to it.
func (c *Cache) use(s *Segment) {
	if c != nil {
		s.used.Store(c.clock.Add(1))
	}
}

// grown notes that a segment keeps more than before, and makes room.
func (c *Cache) grown(s *Segment) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := s.droppable()
	c.sum += now - c.held[s]
	c.held[s] = now
	for c.sum+c.pinnedSum > c.limit {
		old := c.oldest(s)
		if old == nil {
			return
		}
		old.Drop()
		c.sum -= c.held[old]
		delete(c.held, old)
	}
}

// pin notes that a segment keeps so many more bytes until it is closed. It is false where there is no room for them.
func (c *Cache) pin(s *Segment, bytes int64) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinnedSum+bytes > c.limit/pinnable {
		return false
	}
	c.pinned[s] += bytes
	c.pinnedSum += bytes
	return true
}

// oldest returns the one of a few segments, but for one, that was not used for longest, or nil. A map is ranged over from a random place.
func (c *Cache) oldest(but *Segment) *Segment {
	var old *Segment
	left := candidates
	for s := range c.held {
		if s == but {
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

// forget takes a closed segment out.
func (c *Cache) forget(s *Segment) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum -= c.held[s]
	c.pinnedSum -= c.pinned[s]
	delete(c.held, s)
	delete(c.pinned, s)
}

// Memory returns how many bytes all segments keep now.
func (c *Cache) Memory() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum + c.pinnedSum
}
