package simnet

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// Network connects hosts. One mutex guards its state and the state of its hosts, links and
// connections. It is held only for short operations.
type Network struct {
	seed uint64

	mu    sync.Mutex
	hosts map[string]*Host // the latest incarnation of each machine by address
	links map[pair]*link
	conns uint64 // number of random sources so far, part of the seed of the next one
	trace uint64 // see Fingerprint
}

// pair identifies a link by the sorted addresses of its ends.
type pair struct{ a, b string }

// link connects two machines.
type link struct {
	Conditions
	changed  chan struct{} // closed and replaced when the conditions change
	cutAfter int           // bytes until the connection that carries them is reset; negative: no reset
}

// Conditions are the properties of a link in both directions.
type Conditions struct {
	Delay     time.Duration // of everything that is sent
	Jitter    time.Duration // maximum random addition to Delay
	Rate      int           // bytes per second of each connection; 0: no limit
	Down      bool          // nothing arrives; bytes of connections arrive when the link is up again
	Refuse    bool          // new connections are refused
	Loss      float64       // share of datagrams that get lost
	Duplicate float64       // share of datagrams that arrive twice
}

// New returns a network without hosts. The same seed and the same order of connections give the
// same delays.
func New(seed uint64) *Network {
	return &Network{seed: seed, hosts: map[string]*Host{}, links: map[pair]*link{}}
}

// Set changes the conditions between two machines, which are given by their addresses. They need
// not exist yet.
func (n *Network) Set(a, b string, c Conditions) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.link(a, b)
	l.Conditions = c
	close(l.changed)
	l.changed = make(chan struct{})
}

// Cut resets a connection between two machines after the given number of further bytes. It resets
// the connection that carries the last of these bytes.
func (n *Network) Cut(a, b string, after int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link(a, b).cutAfter = after
}

// Fingerprint returns a hash of the lengths and times of everything that was sent on connections,
// in order. Equal runs have equal fingerprints.
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

// rng returns the random source of the next connection between two machines.
func (n *Network) rng(a, b string) *rand.Rand {
	n.conns++
	h := fnv.New64a()
	h.Write([]byte(a + " " + b)) //nolint:errcheck // it never fails
	return rand.New(rand.NewPCG(n.seed^h.Sum64(), n.conns))
}

// wait releases the lock until one of the channels is closed or the given time is reached. The zero
// time means no limit.
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

// earliest returns the earlier of two times. The zero time means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// past reports whether a deadline has passed. The zero time means no deadline.
func past(deadline time.Time) bool { return !deadline.IsZero() && !time.Now().Before(deadline) }
