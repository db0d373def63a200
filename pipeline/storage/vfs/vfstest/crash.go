package vfstest

import "math/rand/v2"

// Kill returns the file system after the process was killed (SIGKILL): everything written is there,
// unsynced changes are still unsynced, locks are released. From now on m and all its files and
// locks fail with ErrCrashed.
func (m *Mem) Kill() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	c := copier{}
	next := &Mem{root: c.node(m.root), locks: map[*node]bool{}, quota: m.quota, seq: m.seq}
	next.recount()
	return next
}

// Crash returns what a disk could hold after a power failure at this instant; the package comment
// has the rules. The same rng state and history give the same disk; further calls give further
// disks for the same instant. From now on m and all its files and locks fail with ErrCrashed.
func (m *Mem) Crash(rng *rand.Rand) *Mem {
	next := m.Kill()
	var dirs []*directory
	next.walk(func(n *node) {
		if n.dir != nil {
			dirs = append(dirs, n.dir)
		}
	})
	loseNames(rng, dirs)
	next.walk(func(n *node) { n.file.losePower(rng) })
	next.recount()
	return next
}

// walk visits every node once, including nodes that only have a name on the disk, in a
// deterministic order.
func (m *Mem) walk(visit func(*node)) {
	seen := map[*node]bool{}
	var descend func(*node)
	descend = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		visit(n)
		if n.dir != nil {
			n.dir.nodes(descend)
		}
	}
	descend(m.root)
}

// recount recomputes names and used bytes.
func (m *Mem) recount() {
	m.walk(func(n *node) { n.names = 0 })
	m.walk(func(n *node) {
		if n.dir == nil {
			return
		}
		for _, child := range n.dir.live {
			child.names++
		}
	})
	m.used = 0
	m.walk(func(n *node) {
		if n.names > 0 {
			m.used += int64(len(n.file.live.data))
		}
	})
}

// copier copies a tree, each node once; the bytes are shared until written to.
type copier map[*node]*node

func (c copier) node(n *node) *node {
	if n == nil {
		return nil
	}
	if done := c[n]; done != nil {
		return done
	}
	to := &node{}
	c[n] = to
	if n.dir != nil {
		to.dir = &directory{live: c.names(n.dir.live), disk: c.names(n.dir.disk)}
		for _, change := range n.dir.pending {
			change.node = c.node(change.node)
			to.dir.pending = append(to.dir.pending, change)
		}
		return to
	}
	to.file = n.file.share()
	return to
}

func (c copier) names(from map[string]*node) map[string]*node {
	to := make(map[string]*node, len(from))
	for name, n := range from {
		to[name] = c.node(n)
	}
	return to
}
