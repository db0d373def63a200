package column

import (
	"cmp"
	"slices"
	"unsafe"
)

// picker is a column of strings that was taken apart, so that some of them can be put together.
type picker struct {
	method  byte
	text    string   // constant
	lengths []uint64 // plain
	bytes   []byte   // plain: all strings
	buf     []byte
	wanted  []wanted
	entries []int32
	texts   []string
}

// wanted is a string that is asked for: its code, and which of those that are asked for it is.
type wanted struct {
	code uint32
	nth  int32
}

// StringsAt reads some of n values that [Encoder.Strings] wrote: dst[i] is value at[i]. The positions ascend and are below n, and there are
// as many as dst has strings. The other values are passed over, which takes a fraction of the time. What is corrupt only in these may
// not be noticed. The strings share memory that was allocated for them alone.
func (d *Decoder) StringsAt(src []byte, n int, at []int32, dst []string) error {
	if len(at) != len(dst) || len(at) > 0 && (at[0] < 0 || int(at[len(at)-1]) >= n) {
		panic("column: positions that are none")
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
		d.takeApart(r, method, n)
		d.pick(r, at, dst)
		return
	}
	p := &d.picker
	size := r.count(n)
	d.takeApart(r, r.byte(), size)
	codes := grow(&d.strCodes, n)
	d.codes(r, codes)
	p.wanted = p.wanted[:0]
	for i, pos := range at {
		if int(codes[pos]) >= size {
			r.fail("a code beyond the table")
			break
		}
		p.wanted = append(p.wanted, wanted{codes[pos], int32(i)})
	}
	slices.SortFunc(p.wanted, func(a, b wanted) int { return cmp.Compare(a.code, b.code) })
	p.entries = p.entries[:0]
	for i, w := range p.wanted {
		if i == 0 || w.code != p.wanted[i-1].code {
			p.entries = append(p.entries, int32(w.code))
		}
	}
	texts := grow(&p.texts, len(p.entries))
	d.pick(r, p.entries, texts)
	entry := -1
	for i, w := range p.wanted {
		if i == 0 || w.code != p.wanted[i-1].code {
			entry++
		}
		dst[w.nth] = texts[entry]
	}
	clear(texts)
}

// takeApart reads n strings that are no table.
func (d *Decoder) takeApart(r *reader, method byte, n int) {
	p := &d.picker
	p.method = method
	switch {
	case r.failed():
	case method == stringsConstant:
		var one [1]string
		d.constant(r, one[:])
		p.text = one[0]
	case method == stringsPlain:
		d.takePlainApart(r, n)
	case method == stringsSplit:
		d.takeSplitApart(r, n)
	default:
		r.fail("unknown method of strings")
	}
}

func (d *Decoder) takePlainApart(r *reader, n int) {
	p := &d.picker
	d.numbers(r, grow(&p.lengths, n))
	total := textBytes(r, p.lengths)
	p.bytes = d.z.stream(r, total, &p.buf)
	p.buf = kept(p.buf)
}

// pick puts together the strings at some positions, and lets go of the column.
func (d *Decoder) pick(r *reader, at []int32, dst []string) {
	p := &d.picker
	switch {
	case r.failed():
	case p.method == stringsConstant:
		for i := range dst {
			dst[i] = p.text
		}
	case p.method == stringsPlain:
		p.pickPlain(at, dst)
	default:
		d.joiner.joinAt(r, at, dst)
	}
	p.text, p.bytes = "", nil
	if p.method == stringsSplit {
		d.joiner.release()
	}
}

func (p *picker) pickPlain(at []int32, dst []string) {
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

// tally counts the strings before a position by what they take from the slots: the first ones of each kind, so many.
type tally struct {
	dec, hexes [maxSlots + 1]int
	digits     [maxSlots]int // taken from slots of uneven hex runs
}

// maxUint64 is how many digits a number has at most.
const maxUint64 = 20

// joinAt puts the strings at some positions together.
func (j *joiner) joinAt(r *reader, at []int32, dst []string) {
	var t tally
	uneven := slices.ContainsFunc(j.hex[:j.nHex], func(s hexSlot) bool { return s.uneven })
	size := 0
	for _, i := range at {
		f := &j.forms[j.codes[i]]
		size += f.length + f.dec*maxUint64
	}
	buf := make([]byte, 0, min(size, MaxBytes))
	next := 0
	for k, i := range at {
		for ; next < int(i); next++ {
			f := &j.forms[j.codes[next]]
			t.dec[f.dec]++
			t.hexes[f.hexes]++
			if uneven {
				t.addDigits(f)
			}
		}
		f := &j.forms[j.codes[i]]
		j.seek(&t)
		from := len(buf)
		buf = j.appendString(r, buf, f.tokens)
		dst[k] = unsafe.String(unsafe.SliceData(buf[from:]), len(buf)-from)
	}
}

func (t *tally) addDigits(f *form) {
	slot := 0
	for _, k := range f.tokens {
		if k.op == opHex || k.op == opUUID {
			t.digits[slot] += k.width
			slot++
		}
	}
}

// seek goes to where the next string begins in the slots.
func (j *joiner) seek(t *tally) {
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
