package stats

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"unsafe"
)

const (
	// version is the version of all sections. Versions 1 and 2 were not released.
	version = 3
	// maxSpans exceeds any number of spans in a section. Thousands of such numbers can be added
	// without overflow.
	maxSpans     = 1 << maxSpansBits
	maxSpansBits = 48
)

// ErrCorrupt matches all errors about bytes that are not a valid section.
var ErrCorrupt = errors.New("invalid statistics")

// reader decodes the parts of a section. After the first error it returns zero values.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrCorrupt, what)
	}
	r.b = nil
}

func (r *reader) uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("truncated number")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// below decodes a number that must be less than end.
func (r *reader) below(end uint64, what string) uint64 {
	v := r.uvarint()
	if v >= end {
		r.fail(what)
		return 0
	}
	return v
}

// count decodes the number of items that follow. Each takes at least size bytes.
func (r *reader) count(size int) int {
	v := r.uvarint()
	if v > uint64(len(r.b)/size) {
		r.fail("count exceeds the data")
		return 0
	}
	return int(v)
}

// names decodes the number of names that follow. Each takes at least size bytes.
func (r *reader) names(size int) int {
	n := r.count(size)
	if n > maxNames {
		r.fail("too many names")
		return 0
	}
	return n
}

// spans decodes a number of spans.
func (r *reader) spans() uint64 { return r.below(maxSpans, "number of spans out of range") }

// bytes returns the next n bytes, or nil.
func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("truncated section")
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// head decodes the version and the number of dropped spans.
func (r *reader) head() (dropped uint64) {
	if v := r.bytes(1); v != nil && v[0] != version {
		r.fail(fmt.Sprintf("unknown version %d", v[0]))
	}
	return r.spans()
}

// texts decodes a list of texts, which alias the section.
func (r *reader) texts() []string {
	n := r.count(1)
	out := make([]string, n)
	for i := range out {
		b := r.bytes(r.uvarint())
		out[i] = unsafe.String(unsafe.SliceData(b), len(b))
		if i > 0 && out[i] <= out[i-1] {
			r.fail("texts out of order")
		}
	}
	return out
}

// text decodes the index of a text.
func (r *reader) text(texts []string) string {
	i := r.below(uint64(len(texts)), "undefined text")
	if r.err != nil {
		return ""
	}
	return texts[i]
}

// texts are the distinct strings of a section.
type texts struct {
	sorted []string
	number map[string]uint64
}

// newTexts sorts the strings and removes duplicates. There may be far fewer texts than strings.
func newTexts(all iter.Seq[string]) texts {
	t := texts{number: map[string]uint64{}}
	for s := range all {
		if _, known := t.number[s]; !known {
			t.number[s] = 0
			t.sorted = append(t.sorted, s)
		}
	}
	slices.Sort(t.sorted)
	for i, s := range t.sorted {
		t.number[s] = uint64(i)
	}
	return t
}

func (t texts) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(t.sorted)))
	for _, s := range t.sorted {
		dst = append(binary.AppendUvarint(dst, uint64(len(s))), s...)
	}
	return dst
}

// appendNumbers appends several varints.
func appendNumbers(dst []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}
