package vfstest

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// losePower replaces the disk with what it could hold after a power failure, see the package
// comment.
func (c *content) losePower(rng *rand.Rand) {
	if len(c.pending) > 0 {
		switch rng.IntN(4) {
		case 0: // nothing arrived
		case 1:
			c.disk = c.live
		default:
			c.disk = c.torn(rng)
		}
	}
	*c = content{live: c.disk.share(), disk: c.disk.share()}
}

// torn returns the disk with a random part of the pending changes.
func (c *content) torn(rng *rand.Rand) body {
	kept := rng.IntN(len(c.pending) + 1) // number of changes included in the file size
	size := c.disk.size
	if kept > 0 {
		size = c.pending[kept-1].size
	}
	result := c.disk.share()
	for i := range c.pending[:kept] {
		if ch := &c.pending[i]; ch.data == nil {
			result.truncate(ch.size)
		}
	}
	touched := c.touched()
	for _, start := range slices.Sorted(maps.Keys(touched)) {
		sector := c.tornSector(rng, start, kept, touched[start])
		result.writeAt(sector[:], start)
	}
	result.truncate(size)
	return result
}

// touched maps the start of every changed sector to the changes that wrote to it, as indexes into
// pending.
func (c *content) touched() map[int64][]int {
	sectors := map[int64][]int{}
	for i := range c.pending {
		start, end := c.pending[i].span()
		for at := roundDown(start); at < end; at += sectorSize {
			sectors[at] = append(sectors[at], i)
		}
	}
	return sectors
}

// tornSector returns one version of the sector from those between two truncations that freed it:
// the last one that the size of the file includes, and the first one that it does not.
func (c *content) tornSector(rng *rand.Rand, start int64, kept int, touched []int) (sector [sectorSize]byte) {
	first, end := 0, len(c.pending)
	for i := range c.pending {
		if !c.pending[i].shrinks(start) {
			continue
		}
		if i >= kept {
			end = i
			break
		}
		first = i + 1
	}
	if first == 0 {
		c.disk.readAt(sector[:], start) // past the end of the disk's file it stays zero
	}
	lo, _ := slices.BinarySearch(touched, first)
	hi, _ := slices.BinarySearch(touched, end)
	for _, i := range touched[lo : lo+rng.IntN(hi-lo+1)] {
		c.pending[i].overlay(&sector, start)
	}
	return sector
}

// overlay copies the bytes of the change that belong to the sector at start into it.
func (c *change) overlay(sector *[sectorSize]byte, start int64) {
	from, to := c.span()
	from, to = max(from, start), min(to, start+sectorSize)
	if c.data == nil {
		clear(sector[from-start : to-start])
		return
	}
	copy(sector[from-start:to-start], c.data[from-c.off:to-c.off])
}
