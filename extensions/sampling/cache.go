package sampling

import (
	"container/list"
	"sync"
	"time"
)

// answer is the last successful response for a service, and the result of the last request.
type answer struct {
	entry *entry    // nil if no request succeeded
	at    time.Time // time of the successful response, or of the failure if there is none
	err   error     // of the last request
	tried time.Time
}

// cache is an LRU cache of responses, limited by memory. It allows one request for each service at
// a time; other callers wait for its response. It is safe for concurrent use.
type cache struct {
	maxBytes int64

	mu     sync.Mutex
	used   int64
	byKey  map[serviceKey]*list.Element // of *cached; only services with a successful response
	recent list.List                    // the latest first
	calls  map[serviceKey]*call
}

type cached struct {
	key serviceKey
	answer
	size int64
}

// call is a request in progress. answer is set when done is closed.
type call struct {
	done   chan struct{}
	answer answer
}

func newCache(maxBytes int64) *cache {
	return &cache{maxBytes: maxBytes, byKey: map[serviceKey]*list.Element{}, calls: map[serviceKey]*call{}}
}

// beginCall returns the cached response if it is still usable, or the call in progress to wait for.
// If it returns neither, the caller must send the request and call end.
func (c *cache) beginCall(key serviceKey, now time.Time, freshFor time.Duration) (known *answer, wait *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		c.recent.MoveToFront(e)
		a := e.Value.(*cached).answer
		if a.err == nil && now.Sub(a.at) < freshFor || a.err != nil && now.Sub(a.tried) < retryAfter {
			return &a, nil
		}
	}
	if f, ok := c.calls[key]; ok {
		return nil, f
	}
	c.calls[key] = &call{done: make(chan struct{})}
	return nil, nil
}

// end stores the result of a request, which failed if a.err is set, and returns it combined with
// the cached one.
func (c *cache) end(key serviceKey, a answer) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		before := e.Value.(*cached)
		switch {
		case a.err != nil:
			a.entry, a.at = before.entry, before.at
		case a.entry.strategy.Equal(before.entry.strategy):
			a.entry = before.entry // keep its since
		}
		c.remove(e)
	}
	if a.entry != nil {
		c.addAnswer(&cached{key, a, sizeOf(key, a)})
	}
	f := c.calls[key]
	delete(c.calls, key)
	f.answer = a
	close(f.done)
	return a
}

func (c *cache) addAnswer(x *cached) {
	c.byKey[x.key] = c.recent.PushFront(x)
	c.used += x.size
	for c.used > c.maxBytes {
		c.remove(c.recent.Back())
	}
}

func (c *cache) remove(e *list.Element) {
	x := c.recent.Remove(e).(*cached)
	delete(c.byKey, x.key)
	c.used -= x.size
}

// sizeOf returns the approximate size of a response in memory, in bytes.
func sizeOf(key serviceKey, a answer) int64 {
	const each, operation = 512, 40
	size := each + 2*len(key.tenant) + 2*len(key.service)
	if o := a.entry.strategy.Operations; o != nil {
		for _, e := range o.PerOperation {
			size += operation + len(e.Name)
		}
	}
	return int64(size)
}
