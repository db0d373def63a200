package stats

import "github.com/tracing-backend/tracing/pipeline/tracestore"

// Nibbles of a histogram with a special meaning.
const (
	emptyRun   = 0
	moreThan14 = 15
	moreBits   = 8
)

// appendHistogram appends an encoded histogram, which must not be empty.
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

// histogram decodes a histogram into h, whose content it replaces. If h is nil, it skips the
// histogram.
func (r *reader) histogram(h *tracestore.Histogram) {
	sum := r.uvarint()
	if h != nil {
		h.Reset()
		h.Sum = sum
	}
	more := r.below(tracestore.Buckets, "too many buckets") + 1
	bucket := r.below(tracestore.Buckets, "bucket out of range")
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
			r.fail("bucket out of range")
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

// addCell adds the cell with a number of a range to a histogram.
func addCell(h *tracestore.Histogram, number int, c *cell) {
	h.Sum = saturatingAdd(h.Sum, c.sum)
	for i, n := range c.counts {
		if n > 0 {
			h.AddBucket(number*perCell+i, uint64(n))
		}
	}
}

// nibbleWriter encodes nibbles.
type nibbleWriter struct {
	b    []byte
	half bool // the high half of the last byte is unused
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

// nibbleReader decodes nibbles.
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
		return 1 // the reader has failed; any value that ends the loops will do
	}
	n.high, n.half = b[0]>>4, true
	return b[0] & 15
}

// number decodes a number, which must be less than maxSpans.
func (n *nibbleReader) number() uint64 {
	v := uint64(0)
	for shift := 0; shift < maxSpansBits; shift += 3 {
		c := n.next()
		v |= uint64(c&7) << shift
		if c < moreBits {
			return v
		}
	}
	n.r.fail("number out of range")
	return 0
}
