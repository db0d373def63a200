package host

import "sync/atomic"

// connectionLimit limits the open TCP connections of all listeners of the process together
// (service.limits.connections). If more connections are open when the limit changes, they stay
// open.
type connectionLimit struct{ limit, open atomic.Int64 }

// take implements pipeline.Settings.Connections.
func (l *connectionLimit) take(must bool) (release func()) {
	if l.open.Add(1) <= l.limit.Load() || must {
		return func() { l.open.Add(-1) }
	}
	l.open.Add(-1)
	return nil
}
