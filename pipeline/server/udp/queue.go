package udp

import (
	"encoding/binary"
	"iter"
	"net/netip"
	"slices"
	"sync"
)

const (
	// slabSize is the maximum number of bytes that a worker takes in one step: enough to share the
	// cost of a store's fsync, and small enough to fit into one request to any next hop after
	// translation.
	slabSize = 256 << 10
	// minSlabs is the minimum number of slabs of a queue, as long as each can hold a datagram of
	// the maximum size.
	minSlabs = 64
	// maxFreeSlabs is the maximum number of unused slabs kept for reuse.
	maxFreeSlabs = 8
	// headerSize is the size of the header of a datagram in a slab: the sender's address and port,
	// and the length.
	headerSize = 16 + 2 + 4
)

// Datagrams is a set of datagrams that a worker takes from the queue together. It is valid until
// the handler returns and is not safe for concurrent use.
type Datagrams struct {
	server  *Server
	mem     []byte // datagrams, each after its header; nil after Release
	n       int
	refused int
}

// Len returns the number of datagrams.
func (d *Datagrams) Len() int { return d.n }

// All returns the senders and contents of the datagrams in order of arrival. The bytes are valid
// until Release is called or the handler returns.
func (d *Datagrams) All() iter.Seq2[netip.AddrPort, []byte] {
	return func(yield func(netip.AddrPort, []byte) bool) {
		for rest := d.mem; len(rest) > 0; {
			header, data := rest[:headerSize], rest[headerSize:]
			from := netip.AddrPortFrom(netip.AddrFrom16([16]byte(header)).Unmap(), binary.NativeEndian.Uint16(header[16:]))
			size := int(binary.NativeEndian.Uint32(header[18:]))
			rest = data[size:]
			if !yield(from, data[:size:size]) {
				return
			}
		}
	}
}

// addPacket appends a datagram if it fits.
func (d *Datagrams) addPacket(p *packet) bool {
	if cap(d.mem)-len(d.mem) < headerSize+p.n {
		return false
	}
	addr := p.from.Addr().As16()
	d.mem = append(d.mem, addr[:]...)
	d.mem = binary.NativeEndian.AppendUint16(d.mem, p.from.Port())
	d.mem = binary.NativeEndian.AppendUint32(d.mem, uint32(p.n))
	d.mem = append(d.mem, p.buf[:p.n]...)
	d.n++
	return true
}

// queue holds datagrams until a worker takes them. They are packed into slabs, so that a small
// datagram uses little more memory than its own size.
type queue struct {
	slabSize   int // bytes
	maxWaiting int // slabs

	mu      sync.Mutex
	filled  sync.Cond    // a slab was added to waiting, or closed was set
	waiting []*Datagrams // oldest first; the last one may have space left
	packets int          // datagrams in waiting
	free    [][]byte
	closed  bool
}

func newQueue(size, maxPacket int) *queue {
	maxEntry := maxPacket + headerSize
	// A multiple of maxEntry, so that datagrams of the maximum size leave no space unused.
	q := &queue{slabSize: maxEntry * max(1, min(slabSize, size/minSlabs)/maxEntry)}
	q.maxWaiting = size / q.slabSize
	q.filled.L = &q.mu
	return q
}

// put adds datagrams, except empty ones, and returns how many it dropped because the queue is full.
func (q *queue) put(s *Server, ps []packet) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range ps {
		p := &ps[i]
		if p.n == 0 {
			continue
		}
		if last := len(q.waiting) - 1; last >= 0 && q.waiting[last].addPacket(p) {
			q.packets++
			continue
		}
		if len(q.waiting) == q.maxWaiting {
			dropped++
			continue
		}
		d := &Datagrams{server: s, mem: q.newSlab()}
		d.addPacket(p)
		q.packets++
		q.waiting = append(q.waiting, d)
		q.filled.Signal()
	}
	return dropped
}

// newSlab returns an empty slab, from the free list if possible.
func (q *queue) newSlab() []byte {
	last := len(q.free) - 1
	if last < 0 {
		return make([]byte, 0, q.slabSize)
	}
	mem := q.free[last]
	q.free[last] = nil
	q.free = q.free[:last]
	return mem
}

// takeDatagrams waits for datagrams. It returns nil when the queue is closed and empty.
func (q *queue) takeDatagrams() *Datagrams {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.filled.Wait()
	}
	if len(q.waiting) == 0 {
		return nil
	}
	d := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	q.packets -= d.n
	return d
}

// recycle returns the memory of a slab to the free list.
func (q *queue) recycle(mem []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.free) < maxFreeSlabs {
		q.free = append(q.free, mem[:0])
	}
}

// close makes take return nil as soon as the queue is empty.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.filled.Broadcast()
}

// discard removes all waiting datagrams and returns their number.
func (q *queue) discard() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.packets
	q.waiting, q.packets = nil, 0
	return n
}

// len returns the number of waiting datagrams.
func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.packets
}
