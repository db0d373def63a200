package stats

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"
)

const (
	// version is that of all sections but one.
	version = 1
	// versionExtra is that of a section of series of which some are Extra.
	versionExtra = 2
	// maxSpans is above any number of spans in a section. Thousands of such numbers can be added.
	maxSpans     = 1 << maxSpansBits
	maxSpansBits = 48
)

// ErrCorrupt is matched by all errors about bytes that are no section.
var ErrCorrupt = errors.New("not valid statistics")

// reader reads the parts of a section. After the first error it returns zeros.
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
		r.fail("a number is cut short")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// below reads a number that must be less than end.
func (r *reader) below(end uint64, what string) uint64 {
	v := r.uvarint()
	if v >= end {
		r.fail(what)
		return 0
	}
	return v
}

// count reads how many things of at least size bytes each follow.
func (r *reader) count(size int) int {
	v := r.uvarint()
	if v > uint64(len(r.b)/size) {
		r.fail("there is less than it says")
		return 0
	}
	return int(v)
}

// names reads how many names of at least size bytes each follow.
func (r *reader) names(size int) int {
	n := r.count(size)
	if n > maxNames {
		r.fail("too many names")
		return 0
	}
	return n
}

// spans reads a number of spans.
func (r *reader) spans() uint64 { return r.below(maxSpans, "a number of spans is out of range") }

// bytes returns the next n bytes, or nil.
func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("cut short")
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// head reads the version, which is at most newest, and the number of dropped spans.
func (r *reader) head(newest byte) (of byte, dropped uint64) {
	if v := r.bytes(1); v != nil {
		if of = v[0]; of < version || of > newest {
			r.fail(fmt.Sprintf("version %d", of))
		}
	}
	return of, r.spans()
}

// texts reads a list of texts, which alias the section.
func (r *reader) texts() []string {
	n := r.count(1)
	out := make([]string, n)
	for i := range out {
		b := r.bytes(r.uvarint())
		out[i] = unsafe.String(unsafe.SliceData(b), len(b))
		if i > 0 && out[i] <= out[i-1] {
			r.fail("texts are not in order")
		}
	}
	return out
}

// text reads the number of a text.
func (r *reader) text(texts []string) string {
	i := r.below(uint64(len(texts)), "there is no such text")
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

// newTexts sorts the strings and drops repeated ones.
func newTexts(all []string) texts {
	slices.Sort(all)
	t := texts{slices.Compact(all), map[string]uint64{}}
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
