package vfstest

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// node is a directory if dir is set, else a file.
type node struct {
	dir     *directory
	file    content
	names   int // directory entries of the running system
	handles int // open files
}

// directory holds names as the running system sees them and as the disk holds them.
type directory struct {
	live    map[string]*node
	disk    map[string]*node
	pending []nameChange // what turns disk into live, oldest first
}

// nameChange removes one name and adds one, atomically: a creation has no gone, a removal no made.
type nameChange struct {
	seq   uint64 // position among all changes of the Mem, from 1
	gone  string
	made  string
	node  *node  // the node that gets the name made
	after uint64 // change of another directory that must be on the disk before this one
}

func newDir() *node {
	return &node{dir: &directory{live: map[string]*node{}, disk: map[string]*node{}}}
}

func (c *nameChange) apply(names map[string]*node) {
	if c.gone != "" {
		delete(names, c.gone)
	}
	if c.made != "" {
		names[c.made] = c.node
	}
}

// change applies c to the live names; the disk gets it at the next sync.
func (d *directory) change(c nameChange) {
	if old := d.live[c.gone]; old != nil {
		old.names--
	}
	if old := d.live[c.made]; old != nil {
		old.names--
	}
	if c.node != nil {
		c.node.names++
	}
	c.apply(d.live)
	d.pending = append(d.pending, c)
}

func (d *directory) sync() {
	for i := range d.pending {
		d.pending[i].apply(d.disk)
	}
	d.pending = nil
}

// nodes calls visit once for each node that the directory knew since its last sync, in a
// deterministic order.
func (d *directory) nodes(visit func(*node)) {
	for _, names := range []map[string]*node{d.disk, d.live} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			visit(names[name])
		}
	}
	for i := range d.pending {
		if n := d.pending[i].node; n != nil {
			visit(n)
		}
	}
}

// loseNames decides for all directories together which pending changes survive a power failure, and
// drops the others.
func loseNames(rng *rand.Rand, dirs []*directory) {
	lost := map[uint64]bool{}
	for _, d := range dirs {
		d.cut(some(rng, len(d.pending)), lost)
	}
	for again := true; again; {
		again = false
		for _, d := range dirs {
			at := slices.IndexFunc(d.pending, func(c nameChange) bool { return lost[c.after] })
			if at >= 0 {
				d.cut(at, lost)
				again = true
			}
		}
	}
	for _, d := range dirs {
		d.sync()
		d.live = maps.Clone(d.disk)
	}
}

// cut drops the pending changes from the n-th on and records them as lost.
func (d *directory) cut(n int, lost map[uint64]bool) {
	for _, c := range d.pending[n:] {
		lost[c.seq] = true
	}
	d.pending = d.pending[:n]
}

// some returns a random number from 0 to n; half of the time 0 or n.
func some(rng *rand.Rand, n int) int {
	switch rng.IntN(4) {
	case 0:
		return 0
	case 1:
		return n
	}
	return rng.IntN(n + 1)
}
