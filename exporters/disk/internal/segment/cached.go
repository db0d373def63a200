package segment

import (
	"sync"
	"sync/atomic"
)

// cached is a part of a file that is read when it is first needed, and kept. A failure is not kept: it may pass.
type cached[T any] struct {
	mu    sync.Mutex // held while the part is read, so that it is read once
	value atomic.Pointer[T]
}

// get returns the part, and reads it if it is not there; then it calls kept.
func (c *cached[T]) get(read func() (*T, error), kept func()) (*T, error) {
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
		kept()
	}
	return v, err
}
