package column

import "encoding/binary"

const (
	repeats  = 4   // splitting pays only where a template has at least so many strings on average
	doubtful = 8   // fewer, and the bytes as they are may be smaller
	probe    = 256 // strings after which hopeless columns are given up
)

// splitter takes strings apart.
type splitter struct {
	grammar   grammar
	templates interner
	codes     []uint32
	decimals  [maxSlots][]uint64
	hex       [maxSlots]nibbles
	nDecimals int // slots in use
	nHex      int

	template   []byte // of the string in hand
	dec, hexes int    // slots that it has filled
}

// nibbles collects hex runs.
type nibbles struct {
	b      []byte
	n      int
	width  int  // digits of the first run
	uneven bool // not all have as many, or an odd number
}

func (x *nibbles) add(s string) {
	if x.n == 0 {
		x.width, x.uneven = len(s), len(s)%2 != 0
	}
	x.uneven = x.uneven || len(s) != x.width
	x.addDigits(s)
}

func (x *nibbles) addDigits(s string) {
	if x.n%2 != 0 && len(s) > 0 {
		x.b[len(x.b)-1] |= nibble(s[0])
		x.n++
		s = s[1:]
	}
	x.n += len(s)
	for ; len(s) >= 2; s = s[2:] {
		x.b = append(x.b, nibble(s[0])<<4|nibble(s[1]))
	}
	if len(s) > 0 {
		x.b = append(x.b, nibble(s[0])<<4)
	}
}

// nibble returns the value of a lower-case hex digit.
func nibble(c byte) byte { return c&15 + c>>6*9 }

// split takes v apart. It reports false where templates repeat too rarely or have no slots.
func (s *splitter) split(v []string, h *Hint) bool {
	s.learn(v, h)
	if s.grammar.runs == 0 {
		return false
	}
	s.reset(len(v))
	defer func() { s.template = kept(s.template) }()
	limit := max(1, len(v)/repeats)
	last := uint32(0)
	for i, x := range v {
		splits := s.take(x)
		if i > 0 && string(s.template) == s.templates.values[last] {
			s.templates.counts[last]++
		} else {
			last = s.templates.addCopy(s.template)
		}
		s.codes = append(s.codes, last)
		if n := len(s.templates.values); !splits || n > limit || i == probe && n > probe/2 {
			s.templates.forget()
			return false
		}
	}
	if s.nDecimals+s.nHex == 0 {
		s.templates.forget()
		return false
	}
	return true
}

// learn finds the grammar of v, or takes that of vectors before.
func (s *splitter) learn(v []string, h *Hint) {
	if use(&h.noLearn) {
		s.grammar = *h.grammar
		return
	}
	s.grammar.learn(v)
	if found(&h.noLearn, len(v)); h.noLearn > 0 {
		g := s.grammar
		h.grammar = &g
	}
}

func (s *splitter) reset(n int) {
	s.templates.reset(n/repeats + 2)
	s.codes = s.codes[:0]
	for i := range maxSlots {
		s.decimals[i] = s.decimals[i][:0]
		s.hex[i] = nibbles{b: kept(s.hex[i].b)[:0]}
	}
	s.nDecimals, s.nHex = 0, 0
}

// take leaves the template of x and puts what varies into the slots. It reports false for a string that can have no template.
func (s *splitter) take(x string) bool {
	s.template, s.dec, s.hexes = s.template[:0], 0, 0
	literal := 0 // where it starts
	kinds := s.grammar.kinds
	for i := 0; i < len(x); {
		k := kinds[x[i]]
		if k == zeroByte {
			return false
		}
		from := i
		i++
		if k&hexDigit == 0 {
			continue
		}
		r := run{from: from, kinds: k}
		for ; i < len(x) && kinds[x[i]]&hexDigit != 0; i++ {
			r.kinds |= kinds[x[i]]
		}
		r.to = i
		if r.len() < minHex && !r.digits() {
			continue
		}
		if next := s.run(x, r, literal); next > r.from {
			i, literal = next, next
		}
	}
	s.template = append(s.template, x[literal:]...)
	s.nDecimals, s.nHex = max(s.nDecimals, s.dec), max(s.nHex, s.hexes)
	return true
}

// run takes what varies in and after run r of x, before which a literal ends, and returns where the next literal starts; r.from if there is
// nothing.
func (s *splitter) run(x string, r run, literal int) int {
	switch {
	case s.hexes < maxSlots && r.len() == clearlyHex && s.grammar.kinds.isUUID(x[r.from:]):
		s.template = append(append(s.template, x[literal:r.from]...), escape, opUUID)
		s.uuid(x[r.from:])
		return r.from + uuidLength
	case s.hexes < maxSlots && s.grammar.hex(x, r):
		to := min(r.to, r.from+maxHex)
		s.template = append(append(s.template, x[literal:r.from]...), escape, opHex, byte(to-r.from))
		s.hex[s.hexes].add(x[r.from:to])
		s.hexes++
		return to
	case s.dec < maxSlots && r.digits():
		return s.number(x, r, literal)
	}
	return r.from
}

func (s *splitter) uuid(x string) {
	var digits [uuidDigits]byte
	d := append(digits[:0], x[:8]...)
	d = append(append(append(d, x[9:13]...), x[14:18]...), x[19:23]...)
	d = append(d, x[24:uuidLength]...)
	s.hex[s.hexes].add(string(d))
	s.hexes++
}

// number takes the first digits of a run that is not hex.
func (s *splitter) number(x string, r run, literal int) int {
	from := r.from
	for s.grammar.kinds[x[from]] != digit {
		from++
	}
	to := min(s.grammar.kinds.digitsEnd(x, from), from+maxDigits)
	v := uint64(0)
	for _, c := range []byte(x[from:to]) {
		v = 10*v + uint64(c-'0')
	}
	s.decimals[s.dec] = append(s.decimals[s.dec], v)
	s.dec++
	s.template = append(append(s.template, x[literal:from]...), escape)
	if n := to - from; s.grammar.padded[n] || x[from] == '0' && n > 1 {
		s.template = append(s.template, opPadded, byte(n))
	} else {
		s.template = append(s.template, opDecimal)
	}
	return to
}

// split appends what the splitter has.
func (e *Encoder) split(dst []byte) []byte {
	s := &e.splitter
	dst = binary.AppendUvarint(dst, uint64(len(s.templates.values)))
	dst = e.plain(dst, s.templates.values)
	if len(s.templates.values) > 1 {
		dst = e.codes(dst, s.codes, &Hint{})
	}
	for i := range s.nDecimals {
		dst = e.numbers(dst, s.decimals[i], false)
	}
	for i := range s.nHex {
		if x := &s.hex[i]; x.uneven {
			dst = append(dst, x.b...)
		} else {
			dst = e.fixed(dst, x.b, x.width/2)
		}
	}
	return dst
}
