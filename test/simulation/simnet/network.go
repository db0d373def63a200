package simnet

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// Network connects hosts. All its state, and that of what belongs to it, is guarded by one lock:
// nobody computes while holding it.
type Network struct {
	seed uint64

	mu    sync.Mutex
	hosts map[string]*Host // the latest life of each machine, by address
	links map[pair]*link
	conns uint64 // made so far, for seeds of their own
	trace uint64 // see Fingerprint
}

// pair names a link, by the addresses of its ends in order.
type pair struct{ a, b string }

// link is what two machines have between them.
type link struct {
	Conditions
	changed  chan struct{} // closed and replaced when the conditions change
	cutAfter int           // bytes until the connection that carries them is reset; below 0: it is not
}

// Conditions are those of a link, in both directions.
type Conditions struct {
	Delay     time.Duration // of everything that is sent
	Jitter    time.Duration // most that is added to Delay
	Rate      int           // bytes a second of each connection; 0: no limit
	Down      bool          // nothing arrives; what connections carry comes when the link is up again
	Refuse    bool          // new connections are refused
	Loss      float64       // share of datagrams that get lost
	Duplicate float64       // share of datagrams that arrive twice
}

// New returns a network without hosts. The same seed and the same order of connections make the
// same delays.
func New(seed uint64) *Network {
	return &Network{seed: seed, hosts: map[string]*Host{}, links: map[pair]*link{}}
}

// Set changes the conditions between two machines, given by their addresses. They need not exist
// yet.
func (n *Network) Set(a, b string, c Conditions) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.link(a, b)
	l.Conditions = c
	close(l.changed)
	l.changed = make(chan struct{})
}

// Cut resets the connection between two machines that carries the next bytes, in the middle of
// them: after so many have passed.
func (n *Network) Cut(a, b string, after int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link(a, b).cutAfter = after
}

// Fingerprint is a number that two runs have in common if everything that was sent in them on
// connections was of the same length, at the same time and in the same order.
func (n *Network) Fingerprint() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.trace
}

// note adds to the fingerprint.
func (n *Network) note(length int, at time.Time) {
	const prime = 1099511628211 // of FNV-1a
	n.trace = ((n.trace^uint64(length))*prime ^ uint64(at.UnixNano())) * prime
}

// link returns the link between two machines. The caller holds the lock.
func (n *Network) link(a, b string) *link {
	p := pair{min(a, b), max(a, b)}
	l := n.links[p]
	if l == nil {
		l = &link{changed: make(chan struct{}), cutAfter: -1}
		n.links[p] = l
	}
	return l
}

// rng returns the source of chance of the next connection between two machines.
func (n *Network) rng(a, b string) *rand.Rand {
	n.conns++
	h := fnv.New64a()
	h.Write([]byte(a + " " + b)) //nolint:errcheck // it never fails
	return rand.New(rand.NewPCG(n.seed^h.Sum64(), n.conns))
}

// wait lets the lock go until one of the channels is closed or the time has come; the zero time
// never comes.
func (n *Network) wait(until time.Time, changed, also <-chan struct{}) {
	n.mu.Unlock()
	defer n.mu.Lock()
	var alarm <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		alarm = t.C
	}
	select {
	case <-changed:
	case <-also:
	case <-alarm:
	}
}

// earliest returns the earlier of two times, where zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// past reports whether a deadline is over. The zero time is none.
func past(deadline time.Time) bool { return !deadline.IsZero() && !time.Now().Before(deadline) }
