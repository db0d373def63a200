package vfstest

import "slices"

const (
	// sectorSize is what a disk writes as a whole or not at all, in bytes.
	sectorSize = 512
	// maxUnsynced is the maximum number of written bytes of one file that wait for a Sync; a kernel
	// under memory pressure would write them back too. It bounds the memory of a test that never
	// syncs.
	maxUnsynced = 16 << 20
)

// content is a file as the running system sees it and as the disk holds it.
type content struct {
	live     body
	disk     body
	pending  []change // what turns disk into live, oldest first
	unsynced int      // bytes in pending
	doubtful int      // pending[:doubtful] were part of a failed Sync
}

// change is one write, or a truncation if data is nil.
type change struct {
	off  int64
	data []byte
	from int64 // size of the file before
	size int64 // size of the file after the operation
}

// shrinks reports whether the change frees the sector that begins at start.
func (c *change) shrinks(start int64) bool {
	return c.data == nil && c.size < c.from && c.size <= start
}

// span returns the range of bytes that the change writes; a truncation inside a sector writes zeros
// to the rest of it.
func (c *change) span() (start, end int64) {
	switch {
	case c.data != nil:
		return c.off, c.off + int64(len(c.data))
	case c.size < c.from:
		return c.size, roundUp(c.size)
	}
	return 0, 0
}

func roundDown(off int64) int64 { return off / sectorSize * sectorSize }

func roundUp(off int64) int64 { return roundDown(off + sectorSize - 1) }

func (c *content) write(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	from := c.live.size
	c.live.writeAt(p, off)
	c.note(change{off: off, data: slices.Clone(p), from: from, size: c.live.size})
}

func (c *content) truncate(size int64) {
	from := c.live.size
	c.live.truncate(size)
	c.note(change{from: from, size: size})
}

func (c *content) note(ch change) {
	c.pending = append(c.pending, ch)
	if c.unsynced += len(ch.data); c.unsynced > maxUnsynced {
		c.sync()
	}
}

// sync writes all changes since the last Sync, successful or not, to the disk.
func (c *content) sync() {
	fresh := c.pending[c.doubtful:]
	for i := range fresh {
		c.disk.apply(&fresh[i])
	}
	if c.doubtful > 0 {
		c.writeSectors(fresh)
	}
	c.pending, c.unsynced, c.doubtful = nil, 0, 0
}

// writeSectors writes whole sectors to the disk, including bytes of a failed Sync that share a
// sector with a later write.
func (c *content) writeSectors(fresh []change) {
	sector := make([]byte, sectorSize)
	for i := range fresh {
		start, end := fresh[i].span()
		for at := roundDown(start); at < min(end, c.live.size); at += sectorSize {
			n, _ := c.live.readAt(sector, at) // short at the end of the file
			c.disk.writeAt(sector[:n], at)
		}
	}
	c.disk.truncate(c.live.size)
}

// failSync is the effect of a failed Sync: the kernel considers everything written, and what is on
// the disk is unknown.
func (c *content) failSync() { c.doubtful = len(c.pending) }

func (b *body) apply(ch *change) {
	if ch.data == nil {
		b.truncate(ch.size)
		return
	}
	b.writeAt(ch.data, ch.off)
}

// share returns a copy that shares the bytes until one of the two is written to.
func (c *content) share() content {
	to := *c
	to.live, to.disk = c.live.share(), c.disk.share()
	to.pending = slices.Clone(c.pending)
	return to
}
