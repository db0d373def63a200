package names

import (
	lru "container/list"
	"sync"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// knownTexts are the texts of a topic in one source. They do not change and own their memory.
type knownTexts struct {
	texts []string // sorted
	cut   bool     // the source has more
}

// memory returns the approximate size in bytes.
func (k *knownTexts) memory() int64 {
	const fixed = 400 // overhead of maps and lists
	n := int64(fixed)
	for _, t := range k.texts {
		n += int64(unsafe.Sizeof(t)) + int64(len(t))
	}
	return n
}

// textCache caches the texts of topics by source. Above a maximum size, it drops the least recently
// used ones. It is safe for concurrent use.
type textCache struct {
	limit int64

	mu       sync.Mutex
	bySource map[source.Source]map[topic]*lru.Element // of *cachedTexts
	used     lru.List                                 // of *cachedTexts, the last used first
	memory   int64
}

// cachedTexts is an element of textCache.used.
type cachedTexts struct {
	src   source.Source
	topic topic
	known *knownTexts
}

func newTextCache(limit int64) *textCache {
	return &textCache{limit: limit, bySource: make(map[source.Source]map[topic]*lru.Element)}
}

// keep drops the texts of all other sources.
func (c *textCache) keep(sources []source.Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := 0
	for _, src := range sources {
		if _, comparable := src.(source.Catalog); comparable && c.bySource[src] != nil {
			known++
		}
	}
	if known == len(c.bySource) {
		return
	}
	gone := make(map[source.Source]bool, len(c.bySource))
	for src := range c.bySource {
		gone[src] = true
	}
	for _, src := range sources {
		if _, comparable := src.(source.Catalog); comparable {
			delete(gone, src)
		}
	}
	for src := range gone {
		for _, e := range c.bySource[src] {
			c.remove(e)
		}
	}
}

// get returns nil if nothing is cached.
func (c *textCache) get(src source.Source, t topic) *knownTexts {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.bySource[src][t]
	if e == nil {
		return nil
	}
	c.used.MoveToFront(e)
	return e.Value.(*cachedTexts).known
}

func (c *textCache) put(src source.Source, t topic, k *knownTexts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.bySource[src][t]; old != nil { // by a concurrent query
		c.remove(old)
	}
	if c.bySource[src] == nil {
		c.bySource[src] = make(map[topic]*lru.Element)
	}
	c.bySource[src][t] = c.used.PushFront(&cachedTexts{src, t, k})
	c.memory += k.memory() + int64(len(t.tenant)+len(t.key))
	for c.memory > c.limit {
		c.remove(c.used.Back())
	}
}

func (c *textCache) remove(e *lru.Element) {
	t := c.used.Remove(e).(*cachedTexts)
	c.memory -= t.known.memory() + int64(len(t.topic.tenant)+len(t.topic.key))
	if delete(c.bySource[t.src], t.topic); len(c.bySource[t.src]) == 0 {
		delete(c.bySource, t.src)
	}
}
