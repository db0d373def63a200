package pipeline

import "sync/atomic"

// ConnectionMemory is the approximate memory of an open connection in bytes: the buffers and stacks
// of the program and of the kernel.
const ConnectionMemory = 24 << 10

// ConnectionLimit limits the open TCP connections of all listeners of the process together
// (service.limits.connections). It is safe for concurrent use. A nil limit, as in tests, admits
// every connection.
type ConnectionLimit struct{ limit, open atomic.Int64 }

// SetLimit changes the limit. If more connections are open already, they stay open.
func (l *ConnectionLimit) SetLimit(n int) { l.limit.Store(int64(n)) }

// Take counts another connection and returns true, or returns false if the limit is reached and the
// connection need not be admitted nevertheless.
func (l *ConnectionLimit) Take(must bool) bool {
	if l == nil {
		return true
	}
	if l.open.Add(1) <= l.limit.Load() || must {
		return true
	}
	l.open.Add(-1)
	return false
}

// Release counts a connection that Take has admitted as closed.
func (l *ConnectionLimit) Release() {
	if l != nil {
		l.open.Add(-1)
	}
}
