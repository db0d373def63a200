package server

import (
	"sync"
	"time"
)

// calls counts the requests that are being served.
type calls struct {
	mu      sync.Mutex
	n       int
	waiting chan struct{} // closed at the next moment without requests; nil: nobody waits
}

func (c *calls) begin() {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
}

func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	c.wake()
}

// open returns how many requests are being served now.
func (c *calls) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// idle returns a channel that is closed once no request is being served.
func (c *calls) idle() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = make(chan struct{})
	}
	idle := c.waiting
	c.wake()
	return idle
}

func (c *calls) wake() {
	if c.n == 0 && c.waiting != nil {
		close(c.waiting)
		c.waiting = nil
	}
}

// within waits for done, but no longer than d.
func within(d time.Duration, done <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
