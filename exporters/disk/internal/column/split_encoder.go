package column

import "encoding/binary"

const (
	minRepeats     = 4   // minimum average number of strings per template for splitting to be worthwhile
	certainRepeats = 8   // with fewer strings per template, the plain encoding may be smaller
	probeStrings   = 256 // number of strings after which a column may be rejected early
)

// splitEncoder splits strings into templates and their variable parts.
type splitEncoder struct {
	classifier runClassifier
	templates  interner
	codes      []uint32
	decimals   [maxSlots][]uint64
	hex        [maxSlots]nibbles
	nDecimals  int // slots in use
	nHex       int

	template   []byte // of the current string
	dec, hexes int    // slots filled by the current string
}

// nibbles collects hex runs.
type nibbles struct {
	b      []byte
	n      int
	width  int  // digits of the first run
	uneven bool // the runs have different or odd numbers of digits
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

// split splits the strings of v. It returns false if templates repeat too rarely or have no slots.
func (s *splitEncoder) split(v []string, h *Hint) bool {
	s.learn(v, h)
	if s.classifier.runs == 0 {
		return false
	}
	s.reset(len(v))
	defer func() { s.template = reusable(s.template) }()
	limit := max(1, len(v)/minRepeats)
	last := uint32(0)
	for i, x := range v {
		splits := s.take(x)
		if i > 0 && string(s.template) == s.templates.values[last] {
			s.templates.counts[last]++
		} else {
			last = s.templates.addCopy(s.template)
		}
		s.codes = append(s.codes, last)
		if n := len(s.templates.values); !splits || n > limit || i == probeStrings && n > probeStrings/2 {
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

// learn classifies the runs of v, or reuses the classifier of h.
func (s *splitEncoder) learn(v []string, h *Hint) {
	if skip(&h.skipLearn) {
		s.classifier = *h.classifier
		return
	}
	s.classifier.learn(v)
	if skipNext(&h.skipLearn, len(v)); h.skipLearn > 0 {
		g := s.classifier
		h.classifier = &g
	}
}

func (s *splitEncoder) reset(n int) {
	s.templates.reset(n/minRepeats + 2)
	s.codes = s.codes[:0]
	for i := range maxSlots {
		s.decimals[i] = s.decimals[i][:0]
		s.hex[i] = nibbles{b: reusable(s.hex[i].b)[:0]}
	}
	s.nDecimals, s.nHex = 0, 0
}

// take sets s.template to the template of x and appends the variable parts to the slots. It returns
// false if x contains a zero byte and thus has no template.
func (s *splitEncoder) take(x string) bool {
	s.template, s.dec, s.hexes = s.template[:0], 0, 0
	literal := 0 // where it starts
	kinds := s.classifier.kinds
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

// run splits off the variable part that starts in run r of x. literal is the start of the literal
// before it. It returns the start of the next literal, or r.from if the run is not variable.
func (s *splitEncoder) run(x string, r run, literal int) int {
	switch {
	case s.hexes < maxSlots && r.len() == certainHexLength && s.classifier.kinds.isUUID(x[r.from:]):
		s.template = append(append(s.template, x[literal:r.from]...), escape, opUUID)
		s.uuid(x[r.from:])
		return r.from + uuidLength
	case s.hexes < maxSlots && s.classifier.hex(x, r):
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

func (s *splitEncoder) uuid(x string) {
	var digits [uuidDigits]byte
	d := append(digits[:0], x[:8]...)
	d = append(append(append(d, x[9:13]...), x[14:18]...), x[19:23]...)
	d = append(d, x[24:uuidLength]...)
	s.hex[s.hexes].add(string(d))
	s.hexes++
}

// number splits off the first digits of a run that is not hex.
func (s *splitEncoder) number(x string, r run, literal int) int {
	from := r.from
	for s.classifier.kinds[x[from]] != digit {
		from++
	}
	to := min(s.classifier.kinds.digitsEnd(x, from), from+maxDigits)
	v := uint64(0)
	for _, c := range []byte(x[from:to]) {
		v = 10*v + uint64(c-'0')
	}
	s.decimals[s.dec] = append(s.decimals[s.dec], v)
	s.dec++
	s.template = append(append(s.template, x[literal:from]...), escape)
	if n := to - from; s.classifier.padded[n] || x[from] == '0' && n > 1 {
		s.template = append(s.template, opPadded, byte(n))
	} else {
		s.template = append(s.template, opDecimal)
	}
	return to
}

// split appends the templates, codes and slots of the splitter.
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
