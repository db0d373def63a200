package loadbalancing

// ring assigns keys to backends by rendezvous hashing: a key belongs to the backend with the
// highest score for it. So every process with the same backends assigns a key to the same backend,
// and adding or removing a backend moves only that backend's keys.
type ring struct{ seeds []uint64 }

// newRing returns the ring of the backends with these addresses, which are sorted.
func newRing(addresses []string) ring {
	r := ring{seeds: make([]uint64, len(addresses))}
	for i, a := range addresses {
		r.seeds[i] = hashText(hashStart, a).key()
	}
	return r
}

// pick returns the index of the backend of a key. There must be at least one backend.
func (r ring) pick(key uint64) int {
	best, high := 0, uint64(0)
	for i, seed := range r.seeds {
		if score := mix(key ^ seed); score > high {
			best, high = i, score
		}
	}
	return best
}

// mix is a bijection in which every bit of the result depends on every bit of v (the finalizer of
// SplitMix64).
func mix(v uint64) uint64 {
	v ^= v >> 30
	v *= 0xbf58476d1ce4e5b9
	v ^= v >> 27
	v *= 0x94d049bb133111eb
	return v ^ v>>31
}

// textHash is the state of a hash over texts (FNV-1a).
type textHash uint64

const (
	hashStart textHash = 0xcbf29ce484222325
	hashPrime textHash = 0x100000001b3
)

func hashText(h textHash, s string) textHash {
	for i := range len(s) {
		h = (h ^ textHash(s[i])) * hashPrime
	}
	return h
}

// key returns the hash as a key of a ring.
func (h textHash) key() uint64 { return mix(uint64(h)) }
