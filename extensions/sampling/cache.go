package sampling

import (
	"container/list"
	"sync"
	"time"
)

// answer is what is known of a service: the last good answer, and how the last question ended.
type answer struct {
	entry *entry    // nil: there was no good answer
	at    time.Time // of the good answer; of the failure where there is none
	err   error     // of the last question
	tried time.Time
}

// cache holds answers within a bound of memory, those asked for last. Of several who want to ask the same at once it lets one.
type cache struct {
	most int64 // bytes

	mu     sync.Mutex
	used   int64
	byKey  map[askedFor]*list.Element // of *cached; only of services with a good answer
	recent list.List                  // the latest first
	asking map[askedFor]*flight
}

type cached struct {
	key askedFor
	answer
	size int64
}

// flight is a question under way. Its answer is there when done is closed.
type flight struct {
	done   chan struct{}
	answer answer
}

func newCache(most int64) *cache {
	return &cache{most: most, byKey: map[askedFor]*list.Element{}, asking: map[askedFor]*flight{}}
}

// begin returns what is known, if that will do; or the question of another one to wait for; or neither: the caller is the one to ask, and
// calls end.
func (c *cache) begin(key askedFor, now time.Time, freshFor time.Duration) (known *answer, wait *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		c.recent.MoveToFront(e)
		a := e.Value.(*cached).answer
		if a.err == nil && now.Sub(a.at) < freshFor || a.err != nil && now.Sub(a.tried) < retryAfter {
			return &a, nil
		}
	}
	if f, ok := c.asking[key]; ok {
		return nil, f
	}
	c.asking[key] = &flight{done: make(chan struct{})}
	return nil, nil
}

// end takes the answer to a question, which failed if it has an error, and returns what is known now.
func (c *cache) end(key askedFor, a answer) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		before := e.Value.(*cached)
		switch {
		case a.err != nil:
			a.entry, a.at = before.entry, before.at
		case a.entry.strategy.Equal(before.entry.strategy):
			a.entry = before.entry // which keeps its date
		}
		c.remove(e)
	}
	if a.entry != nil {
		c.add(&cached{key, a, sizeOf(key, a)})
	}
	f := c.asking[key]
	delete(c.asking, key)
	f.answer = a
	close(f.done)
	return a
}

func (c *cache) add(x *cached) {
	c.byKey[x.key] = c.recent.PushFront(x)
	c.used += x.size
	for c.used > c.most {
		c.remove(c.recent.Back())
	}
}

func (c *cache) remove(e *list.Element) {
	x := c.recent.Remove(e).(*cached)
	delete(c.byKey, x.key)
	c.used -= x.size
}

// sizeOf is about how many bytes an answer takes in memory.
func sizeOf(key askedFor, a answer) int64 {
	const each, operation = 512, 40
	size := each + 2*len(key.tenant) + 2*len(key.service)
	if o := a.entry.strategy.Operations; o != nil {
		for _, e := range o.Each {
			size += operation + len(e.Name)
		}
	}
	return int64(size)
}
