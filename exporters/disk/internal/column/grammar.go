package column

const (
	sampled     = 128 // strings of a column that are looked at
	sampledText = 1 << 10
	minHex      = 4 // shorter runs are never hex
	clearlyHex  = 8 // a run this long with digits and letters is hex wherever it stands
	longest     = 63
)

// grammar tells runs apart for a whole column, so that all its values have one template: "12345678" is a number among numbers and hex
// among hex ids, "042" is a number of three digits where others of three digits have leading zeros.
type grammar struct {
	kinds   *byteKinds
	strings int
	runs    int              // that may vary
	mixed   [longest + 1]int // runs of that length with digits and letters
	padded  [maxDigits + 1]bool
}

// learn looks at a sample of v.
func (g *grammar) learn(v []string) {
	*g = grammar{kinds: g.kinds}
	step := max(1, len(v)/sampled)
	for i := 0; i < len(v); i += step {
		s := v[i]
		g.look(s[:min(len(s), sampledText)])
	}
}

func (g *grammar) look(s string) {
	g.strings++
	for i := 0; i < len(s); {
		if g.kinds[s[i]]&hexDigit == 0 {
			i++
			continue
		}
		r := g.kinds.runAt(s, i)
		i = r.to
		if r.digits() {
			g.runs++
		}
		switch {
		case r.len() == clearlyHex && g.kinds.isUUID(s[r.from:]):
			i = r.from + uuidLength
		case r.mixed() && (r.len() >= clearlyHex || g.kinds.bounded(s, r)):
			g.mixed[min(r.len(), longest)]++
		case !r.letters():
			g.lookAtDigits(s[r.from:r.to])
		}
	}
}

func (g *grammar) lookAtDigits(s string) {
	if s[0] == '0' && len(s) > 1 && len(s) <= maxDigits {
		g.padded[len(s)] = true
	}
}

// hex says whether the run r of s is hex.
func (g *grammar) hex(s string, r run) bool {
	n := r.len()
	switch {
	case n >= clearlyHex:
		return r.mixed() || g.mixed[min(n, longest)] > 0 || !r.letters() && n > maxDigits
	case n >= minHex:
		return 8*g.mixed[n] >= g.strings && g.kinds.bounded(s, r)
	}
	return false
}
