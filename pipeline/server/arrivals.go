package server

import (
	"math"
	"sync"

	"google.golang.org/grpc/peer"
)

// arrivals bounds how many calls may be waiting for their message. Each holds as much of the budget as the greatest message needs, and
// costs its client next to nothing: without a bound a few silent calls would shut out everybody else. One connection gets a half of the
// budget for them, all together three quarters.
type arrivals struct {
	perConn, total int // most

	mu     sync.Mutex
	n      int
	byConn map[*peer.Peer]int
}

// newArrivals takes the bytes of the greatest message and of the budget. At least one call may always wait.
func newArrivals(message, budget int64) *arrivals {
	a := &arrivals{perConn: math.MaxInt, total: math.MaxInt, byConn: map[*peer.Peer]int{}}
	if budget > 0 {
		a.perConn = int(max(1, budget/2/message))
		a.total = int(max(1, budget/4*3/message))
	}
	return a
}

// begin reports whether one more call of the connection may wait; end takes it back. gRPC has one peer for all calls of a connection.
func (a *arrivals) begin(conn *peer.Peer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n >= a.total || a.byConn[conn] >= a.perConn {
		return false
	}
	a.n++
	a.byConn[conn]++
	return true
}

func (a *arrivals) end(conn *peer.Peer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n--
	if a.byConn[conn]--; a.byConn[conn] == 0 {
		delete(a.byConn, conn)
	}
}
