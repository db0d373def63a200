package server

import "sync"

// activeCalls counts the requests or connections that are being served.
type activeCalls struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n becomes 0; nil if no goroutine waits
}

// beginCall counts another call and returns the new number.
func (c *activeCalls) beginCall() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

func (c *activeCalls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	c.notifyIfIdle()
}

// count returns how many are being served now.
func (c *activeCalls) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// whenIdle returns a channel that is closed as soon as no call is being served.
func (c *activeCalls) whenIdle() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.notifyIfIdle()
	return idle
}

func (c *activeCalls) notifyIfIdle() {
	if c.n == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}
