package stats

import "github.com/tracing-backend/tracing/pipeline/tracestore"

// Nibbles of a histogram that are not a count.
const (
	emptyRun   = 0
	moreThan14 = 15
	moreBits   = 8
)

// appendHistogram appends a histogram that is not empty.
func appendHistogram(dst []byte, h *tracestore.Histogram) []byte {
	first, counts := h.Counts()
	used := uint64(0)
	for _, n := range counts {
		if n > 0 {
			used++
		}
	}
	w := nibbleWriter{b: appendNumbers(dst, h.Sum, used-1, uint64(first))}
	empty := uint64(0)
	for _, n := range counts {
		if n == 0 {
			empty++
			continue
		}
		if empty > 0 {
			w.put(emptyRun)
			w.number(empty - 1)
			empty = 0
		}
		if n < moreThan14 {
			w.put(byte(n))
			continue
		}
		w.put(moreThan14)
		w.number(n - moreThan14)
	}
	return w.b
}

// histogram reads a histogram in place of what h was; nil: only past it.
func (r *reader) histogram(h *tracestore.Histogram) {
	sum := r.uvarint()
	if h != nil {
		h.Reset()
		h.Sum = sum
	}
	more := r.below(tracestore.Buckets, "too many buckets") + 1
	bucket := r.below(tracestore.Buckets, "a bucket is out of range")
	for nibbles := (nibbleReader{r: r}); more > 0; {
		n := uint64(nibbles.next())
		switch n {
		case emptyRun:
			bucket += nibbles.number() + 1
			continue
		case moreThan14:
			n += nibbles.number()
		}
		if bucket >= tracestore.Buckets {
			r.fail("a bucket is out of range")
		}
		if r.err != nil {
			return
		}
		if h != nil {
			h.AddBucket(int(bucket), n)
		}
		bucket++
		more--
	}
}

// addCell adds an octave.
func addCell(h *tracestore.Histogram, octave int, c *cell) {
	h.Sum = sumUp(h.Sum, c.sum)
	for i, n := range c.counts {
		if n > 0 {
			h.AddBucket(octave*perOctave+i, uint64(n))
		}
	}
}

// nibbleWriter appends nibbles.
type nibbleWriter struct {
	b    []byte
	half bool // the high half of the last byte is free
}

func (w *nibbleWriter) put(v byte) {
	if w.half {
		w.b[len(w.b)-1] |= v << 4
	} else {
		w.b = append(w.b, v)
	}
	w.half = !w.half
}

func (w *nibbleWriter) number(v uint64) {
	for ; v >= moreBits; v >>= 3 {
		w.put(byte(v&7) | moreBits)
	}
	w.put(byte(v))
}

// nibbleReader reads nibbles off a reader.
type nibbleReader struct {
	r    *reader
	high byte
	half bool // high is the next nibble
}

func (n *nibbleReader) next() byte {
	if n.half {
		n.half = false
		return n.high
	}
	b := n.r.bytes(1)
	if b == nil {
		return 1 // any that ends a loop; the reader has failed
	}
	n.high, n.half = b[0]>>4, true
	return b[0] & 15
}

// number reads a number below maxSpans.
func (n *nibbleReader) number() uint64 {
	v := uint64(0)
	for shift := 0; shift < maxSpansBits; shift += 3 {
		c := n.next()
		v |= uint64(c&7) << shift
		if c < moreBits {
			return v
		}
	}
	n.r.fail("a number is out of range")
	return 0
}
