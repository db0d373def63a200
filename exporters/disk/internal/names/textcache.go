package names

import (
	lru "container/list"
	"sync"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// knownTexts is what one source has of a topic. It does not change. Its texts are its own.
type knownTexts struct {
	texts []string // sorted
	cut   bool     // there are others
}

// memory returns about how many bytes are kept.
func (k *knownTexts) memory() int64 {
	const fixed = 400 // of the places in maps and lists
	n := int64(fixed)
	for _, t := range k.texts {
		n += int64(unsafe.Sizeof(t)) + int64(len(t))
	}
	return n
}

// textCache keeps what sources have of topics, those that were asked about last, up to a number of bytes. Safe for concurrent use.
type textCache struct {
	limit int64

	mu       sync.Mutex
	bySource map[source.Source]map[topic]*lru.Element // of *cachedTexts
	used     lru.List                                 // of *cachedTexts, the one that was asked about last in front
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

// keep forgets the sources that are not among these.
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

// get returns nil where nothing is known.
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
	if old := c.bySource[src][t]; old != nil { // two queries found out the same
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
