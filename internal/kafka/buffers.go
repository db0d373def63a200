package kafka

import "sync"

// Buffers reuses the memory of written records for later ones. It is safe for concurrent use. A nil
// *Buffers reuses nothing.
type Buffers struct{ free sync.Pool } // of *[]byte

const (
	// maxBuffer is the capacity in bytes above which a buffer is not kept.
	maxBuffer = 2 << 20
	// smallBuffer is the capacity in bytes up to which a buffer is used for a record of any size:
	// batches differ in size, and growing new buffers takes a tenth of the exporter's CPU time.
	smallBuffer = 512 << 10
	// maxSpare is the maximum capacity of larger buffers, as a multiple of the needed size: the
	// budget does not include memory that a record holds besides its bytes.
	maxSpare = 4
)

// get returns an empty buffer. If no free one is suitable, it returns a new one with the given
// capacity.
func (b *Buffers) get(capacity int) []byte {
	if b != nil {
		if free, ok := b.free.Get().(*[]byte); ok && cap(*free) <= max(smallBuffer, maxSpare*capacity) {
			return *free
		}
	}
	return make([]byte, 0, capacity)
}

// Reuse releases the memory of the values for later records. The values must not be used
// afterwards, not even by the client that wrote them.
func (r *Records) Reuse() {
	if r.buffers == nil {
		return
	}
	for i := range r.List {
		if value := r.List[i].Value[:0]; cap(value) <= maxBuffer {
			r.buffers.free.Put(&value)
		}
		r.List[i].Value = nil
	}
}
