package column

import (
	"cmp"
	"slices"
	"unsafe"
)

// stringSelector holds the decoded parts of a column of strings, from which single strings are
// built.
type stringSelector struct {
	method   byte
	text     string   // constant
	lengths  []uint64 // plain
	bytes    []byte   // plain: all strings
	buf      []byte
	requests []request
	entries  []int32
	texts    []string
}

// request is a requested string of a table.
type request struct {
	code uint32
	nth  int32 // index into the result
}

// StringsAt decodes some of n values that [Encoder.Strings] encoded: dst[i] becomes value at[i].
// Positions must ascend and be less than n, and len(at) must equal len(dst). Other values are
// skipped, which is much faster than decoding all; corruption in them may go unnoticed. The strings
// share newly allocated memory.
func (d *Decoder) StringsAt(src []byte, n int, at []int32, dst []string) error {
	if len(at) != len(dst) || len(at) > 0 && (at[0] < 0 || int(at[len(at)-1]) >= n) {
		panic("column: StringsAt: invalid positions")
	}
	r := reader{b: src}
	if n > 0 {
		d.stringsAt(&r, n, at, dst)
	}
	return r.end("strings")
}

func (d *Decoder) stringsAt(r *reader, n int, at []int32, dst []string) {
	method := r.byte()
	if method != stringsTable {
		d.readParts(r, method, n)
		d.pick(r, at, dst)
		return
	}
	p := &d.selector
	size := r.count(n)
	d.readParts(r, r.byte(), size)
	codes := grow(&d.strCodes, n)
	d.codes(r, codes)
	p.requests = p.requests[:0]
	for i, pos := range at {
		if int(codes[pos]) >= size {
			r.fail("code exceeds the table")
			break
		}
		p.requests = append(p.requests, request{codes[pos], int32(i)})
	}
	slices.SortFunc(p.requests, func(a, b request) int { return cmp.Compare(a.code, b.code) })
	p.entries = p.entries[:0]
	for i, w := range p.requests {
		if i == 0 || w.code != p.requests[i-1].code {
			p.entries = append(p.entries, int32(w.code))
		}
	}
	texts := grow(&p.texts, len(p.entries))
	d.pick(r, p.entries, texts)
	entry := -1
	for i, w := range p.requests {
		if i == 0 || w.code != p.requests[i-1].code {
			entry++
		}
		dst[w.nth] = texts[entry]
	}
	clear(texts)
}

// readParts reads the parts of n strings that are not encoded as a table.
func (d *Decoder) readParts(r *reader, method byte, n int) {
	p := &d.selector
	p.method = method
	switch {
	case r.failed():
	case method == stringsConstant:
		var one [1]string
		d.constant(r, one[:])
		p.text = one[0]
	case method == stringsPlain:
		d.readPlainParts(r, n)
	case method == stringsSplit:
		d.readSplitParts(r, n)
	default:
		r.fail("unknown method of strings")
	}
}

func (d *Decoder) readPlainParts(r *reader, n int) {
	p := &d.selector
	d.numbers(r, grow(&p.lengths, n))
	total := totalLength(r, p.lengths)
	p.bytes = d.z.stream(r, total, &p.buf)
	p.buf = reusable(p.buf)
}

// pick builds the strings at some positions, and releases the parts.
func (d *Decoder) pick(r *reader, at []int32, dst []string) {
	p := &d.selector
	switch {
	case r.failed():
	case p.method == stringsConstant:
		for i := range dst {
			dst[i] = p.text
		}
	case p.method == stringsPlain:
		p.pickPlain(at, dst)
	default:
		d.splits.appendSelected(r, at, dst)
	}
	p.text, p.bytes = "", nil
	if p.method == stringsSplit {
		d.splits.release()
	}
}

func (p *stringSelector) pickPlain(at []int32, dst []string) {
	size := 0
	for _, i := range at {
		size += int(p.lengths[i])
	}
	buf := make([]byte, 0, size)
	from, next := 0, 0
	for k, i := range at {
		for ; next < int(i); next++ {
			from += int(p.lengths[next])
		}
		begin := len(buf)
		buf = append(buf, p.bytes[from:from+int(p.lengths[i])]...)
		dst[k] = unsafe.String(unsafe.SliceData(buf[begin:]), len(buf)-begin)
	}
}

// slotCounts counts the strings before a position by the number of slots that they use of each
// kind. A string that uses n slots uses the first n.
type slotCounts struct {
	dec, hexes [maxSlots + 1]int
	digits     [maxSlots]int // digits used of slots with uneven hex runs
}

// maxUint64Digits is the maximum number of decimal digits of a uint64.
const maxUint64Digits = 20

// appendSelected builds the strings at some positions.
func (j *splitDecoder) appendSelected(r *reader, at []int32, dst []string) {
	var t slotCounts
	uneven := slices.ContainsFunc(j.hex[:j.nHex], func(s hexSlot) bool { return s.uneven })
	size := 0
	for _, i := range at {
		f := &j.parsed[j.codes[i]]
		size += f.length + f.dec*maxUint64Digits
	}
	buf := make([]byte, 0, min(size, MaxBytes))
	next := 0
	for k, i := range at {
		for ; next < int(i); next++ {
			f := &j.parsed[j.codes[next]]
			t.dec[f.dec]++
			t.hexes[f.hexes]++
			if uneven {
				t.addDigits(f)
			}
		}
		f := &j.parsed[j.codes[i]]
		j.seek(&t)
		from := len(buf)
		buf = j.appendString(r, buf, f.tokens)
		dst[k] = unsafe.String(unsafe.SliceData(buf[from:]), len(buf)-from)
	}
}

func (t *slotCounts) addDigits(f *parsedTemplate) {
	slot := 0
	for _, k := range f.tokens {
		if k.op == opHex || k.op == opUUID {
			t.digits[slot] += k.width
			slot++
		}
	}
}

// seek sets the positions in all slots to the parts of the next string.
func (j *splitDecoder) seek(t *slotCounts) {
	before := 0
	for k := j.nDecimals - 1; k >= 0; k-- {
		before += t.dec[k+1]
		j.used[k] = before
	}
	before = 0
	for k := j.nHex - 1; k >= 0; k-- {
		before += t.hexes[k+1]
		if s := &j.hex[k]; s.uneven {
			s.p = t.digits[k]
		} else {
			s.p = before * s.width
		}
	}
}
