package segment

import (
	"sync"
	"sync/atomic"
)

// Cache bounds what open segments keep in memory together: when one reads a part of its file that it keeps, those that were not used for
// longest forget theirs. Safe for concurrent use.
type Cache struct {
	limit int64
	clock atomic.Int64 // counts uses

	mu   sync.Mutex
	held map[*Segment]int64 // bytes
	sum  int64
}

// NewCache returns a cache of so many bytes. One segment alone may exceed them.
func NewCache(limit int64) *Cache {
	return &Cache{limit: limit, held: make(map[*Segment]int64)}
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
	for c.sum > c.limit {
		old := c.oldest(s)
		if old == nil {
			return
		}
		old.Drop()
		c.sum -= c.held[old]
		delete(c.held, old)
	}
}

// oldest returns the segment that was not used for longest, but for one, or nil.
func (c *Cache) oldest(but *Segment) *Segment {
	var old *Segment
	for s := range c.held {
		if s != but && (old == nil || s.used.Load() < old.used.Load()) {
			old = s
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
	delete(c.held, s)
}

// Memory returns how many bytes all segments keep now.
func (c *Cache) Memory() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum
}
