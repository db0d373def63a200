package server

import (
	"math"
	"sync"

	"google.golang.org/grpc/peer"
)

// arrivals limits the calls that wait for their first message. Such a call reserves budget for a
// message of the maximum size but costs its client almost nothing, so a few silent calls could
// otherwise exhaust the budget. The calls of one connection may reserve at most half of the budget,
// all calls together three quarters.
type arrivals struct {
	maxPerConn, maxTotal int

	mu     sync.Mutex
	n      int
	byConn map[*peer.Peer]int
}

// newArrivals returns the limits for a maximum message size and a budget, both in bytes. They are
// at least 1.
func newArrivals(message, budget int64) *arrivals {
	a := &arrivals{maxPerConn: math.MaxInt, maxTotal: math.MaxInt, byConn: map[*peer.Peer]int{}}
	if budget > 0 {
		a.maxPerConn = int(max(1, budget/2/message))
		a.maxTotal = int(max(1, budget/4*3/message))
	}
	return a
}

// beginArrival reports whether another call of the connection may wait. If so, the caller must call
// end later. gRPC uses the same *peer.Peer for all calls of a connection.
func (a *arrivals) beginArrival(conn *peer.Peer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n >= a.maxTotal || a.byConn[conn] >= a.maxPerConn {
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
