package column

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Methods of a column of strings, its first byte.
const (
	stringsConstant = 1 + iota // length, stream
	stringsPlain               // lengths (numbers), stream of all bytes
	stringsSplit               // count, templates (as plain), codes of templates, slots; see template.go
	stringsTable               // number of distinct values, these as strings without a table, codes
)

// strings appends v in the encoding that is likely to be smallest.
func (e *Encoder) strings(dst []byte, v []string, h *Hint) []byte {
	size := total(v)
	if size > MaxBytes {
		panic(fmt.Sprintf("column: %d bytes of values exceed MaxBytes", size))
	}
	maySplit := size <= MaxBytes/2 // a template can be twice as long as its string
	if same(v) {
		return e.constant(dst, v[0])
	}
	if skip(&h.skipTable) {
		return e.direct(dst, v, maySplit, h)
	}
	mark := len(dst)
	dst = e.tableOrDirect(dst, v, maySplit, h)
	if dst[mark] != stringsTable {
		skipNext(&h.skipTable, len(v))
	}
	return dst
}

// tableOrDirect appends v with or without a table, depending on estimated sizes.
func (e *Encoder) tableOrDirect(dst []byte, v []string, maySplit bool, h *Hint) []byte {
	e.distinct.reset(len(v))
	defer e.distinct.forget()
	codes := grow(&e.strCodes, len(v))
	for i, s := range v {
		codes[i] = e.distinct.add(s)
	}
	distinct := len(e.distinct.values)
	if distinct > len(v)-len(v)/16 {
		return e.direct(dst, v, maySplit, h)
	}
	return e.compare(dst, v, codes, maySplit, h)
}

// compare appends v, whose codes are given, with or without a table. It writes the more promising
// encoding first; its size allows for an estimate of the other one.
func (e *Encoder) compare(dst []byte, v []string, codes []uint32, maySplit bool, h *Hint) []byte {
	mark, distinct := len(dst), len(e.distinct.values)
	ordered, cost := e.codeBits(codes)
	pays := func(n, size int) bool { return size*(len(v)-distinct) > n*cost/8 } // size bytes for n strings
	if distinct > len(v)/2 {
		dst = e.direct(dst, v, maySplit, h)
		if !pays(len(v), len(dst)-mark) {
			return dst
		}
		dst = dst[:mark]
	}
	if !ordered {
		e.distinct.rank(codes)
	}
	dst = binary.AppendUvarint(append(dst, stringsTable), uint64(distinct))
	dst = e.direct(dst, e.distinct.values, maySplit, h)
	if !pays(distinct, len(dst)-mark) {
		return e.direct(dst[:mark], v, maySplit, h)
	}
	if ordered && distinct <= 256 {
		return e.codeNumbers(dst, codes)
	}
	return e.codes(dst, codes, &Hint{})
}

func (e *Encoder) constant(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(append(dst, stringsConstant), uint64(len(s)))
	return e.z.stream(dst, unsafe.Slice(unsafe.StringData(s), len(s)))
}

// codeBits estimates the size of codes in bits. It reports whether they are smaller in the order of
// first appearance than ranked by frequency: ids that occur in several spans of a trace rise slowly
// within each shape.
func (e *Encoder) codeBits(codes []uint32) (ordered bool, size int) {
	rising, ranked := e.plan(e.asUint64s(codes), false).bits, entropy(e.distinct.counts, len(codes))
	return rising < 0.95*ranked, int(min(rising, ranked))
}

// direct appends strings without a table.
func (e *Encoder) direct(dst []byte, v []string, maySplit bool, h *Hint) []byte {
	mark := len(dst)
	if !maySplit || !e.splitter.split(v, h) {
		return e.plain(append(dst, stringsPlain), v)
	}
	dst = e.split(append(dst, stringsSplit))
	templates := len(e.splitter.templates.values)
	// The plain encoding never compresses to less than a quarter.
	if templates > len(v)/certainRepeats && len(dst)-mark > total(v)/4 {
		e.second = e.plain(append(e.second[:0], stringsPlain), v)
		if len(e.second) < len(dst)-mark {
			dst = append(dst[:mark], e.second...)
		}
		e.second = reusable(e.second)
	}
	e.splitter.templates.forget()
	return dst
}

// plain appends the lengths and bytes of strings.
func (e *Encoder) plain(dst []byte, v []string) []byte {
	u := grow(&e.number, len(v))
	e.text = e.text[:0]
	for i, s := range v {
		u[i] = uint64(len(s))
		e.text = append(e.text, s...)
	}
	dst = e.z.stream(e.numbers(dst, u, false), e.text)
	e.text = reusable(e.text)
	return dst
}

// strings decodes a column of strings.
func (d *Decoder) strings(r *reader, dst []string) {
	method := r.byte()
	if method != stringsTable {
		d.direct(r, method, dst)
		return
	}
	table := grow(&d.table, r.count(len(dst)))
	codes := grow(&d.strCodes, len(dst))
	d.stringTable(r, table, codes)
	if !r.failed() {
		for i, c := range codes {
			dst[i] = table[c]
		}
	}
	clear(table)
}

// stringTable decodes a table without its size, and its codes, which it checks.
func (d *Decoder) stringTable(r *reader, table []string, codes []uint32) {
	d.direct(r, r.byte(), table)
	d.codes(r, codes)
	for _, c := range codes {
		if int(c) >= len(table) {
			r.fail("code exceeds the table")
		}
	}
}

// direct decodes strings that are not encoded as a table.
func (d *Decoder) direct(r *reader, method byte, dst []string) {
	switch {
	case r.failed():
	case method == stringsConstant:
		d.constant(r, dst)
	case method == stringsPlain:
		d.plain(r, dst)
	case method == stringsSplit:
		d.split(r, dst)
	default:
		r.fail("unknown method of strings")
	}
}

func (d *Decoder) constant(r *reader, dst []string) {
	n := r.uvarint()
	if n > MaxBytes {
		r.fail("string too long")
		return
	}
	s := d.text(r, int(n))
	for i := range dst {
		dst[i] = s
	}
}

// text decodes a stream of n bytes into new memory.
func (d *Decoder) text(r *reader, n int) string {
	body, compressed := d.z.body(r, n)
	if !compressed {
		return string(body)
	}
	b := make([]byte, n)
	d.z.decompress(r, body, b)
	return unsafe.String(unsafe.SliceData(b), n)
}

func (d *Decoder) plain(r *reader, dst []string) {
	lengths := grow(&d.number, len(dst))
	d.numbers(r, lengths)
	s := d.text(r, totalLength(r, lengths))
	if !r.failed() {
		cut(s, lengths, dst)
	}
}

// totalLength returns the sum of lengths. It fails if the sum exceeds MaxBytes.
func totalLength(r *reader, lengths []uint64) (n int) {
	if r.failed() {
		return 0
	}
	for _, l := range lengths {
		if l > MaxBytes || n > MaxBytes {
			r.fail("strings too long")
			return 0
		}
		n += int(l)
	}
	if n > MaxBytes {
		r.fail("strings too long")
		return 0
	}
	return n
}
