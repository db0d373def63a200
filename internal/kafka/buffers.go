package kafka

import "sync"

// Buffers keeps the memory of records that were written for the next ones. It may be used
// concurrently. A nil *Buffers keeps nothing.
type Buffers struct{ free sync.Pool } // of *[]byte

const (
	// maxBuffer is the capacity in bytes above which a buffer is not kept.
	maxBuffer = 2 << 20
	// smallBuffer is the capacity in bytes up to which a buffer is used for a record of any size:
	// batches differ in size, and growing new buffers costs a tenth of the exporter's time.
	smallBuffer = 512 << 10
	// maxSpare is the maximum capacity of other buffers, as a multiple of what is needed: memory
	// that a record holds beside its bytes is not in the budget.
	maxSpare = 4
)

// get returns an empty buffer, a new one of the given capacity if none is free that suits.
func (b *Buffers) get(capacity int) []byte {
	if b != nil {
		if free, ok := b.free.Get().(*[]byte); ok && cap(*free) <= max(smallBuffer, maxSpare*capacity) {
			return *free
		}
	}
	return make([]byte, 0, capacity)
}

// Reuse gives the memory of the values to later records. The values must not be used afterwards,
// also not by a client that wrote them.
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
