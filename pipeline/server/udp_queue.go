package server

import (
	"encoding/binary"
	"iter"
	"net/netip"
	"slices"
	"sync"
)

const (
	// slabSize is how many bytes of datagrams a worker takes at once at most: enough to share the cost of a store's fsync, and few enough
	// to fit into one request of any next hop once they are translated.
	slabSize = 256 << 10
	// slabsOfQueue is how many slabs a queue has at least, as long as each can still hold the greatest datagram.
	slabsOfQueue = 64
	// slabsKept is how many slabs without use are kept for later.
	slabsKept = 8
	// datagramHead is what a slab holds besides the bytes of a datagram: the sender's address, its port, and the length.
	datagramHead = 16 + 2 + 4
)

// Datagrams is what a worker takes at once: all that waited, up to a limit. It belongs to the handler until that returns, and to one goroutine
// of it at a time.
type Datagrams struct {
	server  *UDP
	mem     []byte // datagrams, each behind its head; nil: released
	n       int
	refused int
}

// Len returns the number of datagrams.
func (d *Datagrams) Len() int { return d.n }

// All returns the datagrams and who sent them, in the order of their arrival. The bytes are valid until Release, or until the handler returns.
func (d *Datagrams) All() iter.Seq2[netip.AddrPort, []byte] {
	return func(yield func(netip.AddrPort, []byte) bool) {
		for rest := d.mem; len(rest) > 0; {
			head, data := rest[:datagramHead], rest[datagramHead:]
			from := netip.AddrPortFrom(netip.AddrFrom16([16]byte(head)).Unmap(), binary.NativeEndian.Uint16(head[16:]))
			size := int(binary.NativeEndian.Uint32(head[18:]))
			rest = data[size:]
			if !yield(from, data[:size:size]) {
				return
			}
		}
	}
}

// add appends a datagram if it fits.
func (d *Datagrams) add(p *packet) bool {
	if cap(d.mem)-len(d.mem) < datagramHead+p.n {
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

// udpQueue holds datagrams, packed into slabs, until a worker takes them. Its memory is that of the slabs: a small datagram costs its own bytes.
type udpQueue struct {
	slab int // bytes
	most int // slabs that may wait

	mu      sync.Mutex
	filled  sync.Cond    // a slab came to wait, or closed
	waiting []*Datagrams // oldest first; the last one may have room left
	packets int          // in all that wait
	free    [][]byte
	closed  bool
}

func newUDPQueue(size, maxPacket int) *udpQueue {
	greatest := maxPacket + datagramHead
	q := &udpQueue{slab: greatest * max(1, min(slabSize, size/slabsOfQueue)/greatest)} // a multiple, so that the greatest leave no room unused
	q.most = size / q.slab
	q.filled.L = &q.mu
	return q
}

// put adds datagrams, those of no bytes left out, and returns how many found no room.
func (q *udpQueue) put(s *UDP, ps []packet) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range ps {
		p := &ps[i]
		if p.n == 0 {
			continue
		}
		if last := len(q.waiting) - 1; last >= 0 && q.waiting[last].add(p) {
			q.packets++
			continue
		}
		if len(q.waiting) == q.most {
			dropped++
			continue
		}
		d := &Datagrams{server: s, mem: q.memory()}
		d.add(p)
		q.packets++
		q.waiting = append(q.waiting, d)
		q.filled.Signal()
	}
	return dropped
}

// memory returns a slab without content.
func (q *udpQueue) memory() []byte {
	last := len(q.free) - 1
	if last < 0 {
		return make([]byte, 0, q.slab)
	}
	mem := q.free[last]
	q.free[last] = nil
	q.free = q.free[:last]
	return mem
}

// take waits for datagrams; nil: there will be no more.
func (q *udpQueue) take() *Datagrams {
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

// recycle takes the memory of a slab that nobody looks at any more.
func (q *udpQueue) recycle(mem []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.free) < slabsKept {
		q.free = append(q.free, mem[:0])
	}
}

// close lets workers end once nothing waits.
func (q *udpQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.filled.Broadcast()
}

// abandon throws away what waits, and returns how many datagrams that were.
func (q *udpQueue) abandon() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.packets
	q.waiting, q.packets = nil, 0
	return left
}

// len returns how many datagrams wait.
func (q *udpQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.packets
}
