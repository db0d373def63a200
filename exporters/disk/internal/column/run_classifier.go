package column

const (
	maxSamples       = 128     // strings sampled per column
	maxSampleBytes   = 1 << 10 // of each sampled string
	minHex           = 4       // shorter runs are never hex
	certainHexLength = 8       // a run of this length with digits and letters is always hex
	maxRunLength     = 63      // longer runs are counted as this length
)

// runClassifier decides for a whole column which runs are hex and which numbers have leading zeros,
// so that its values share one template: "12345678" is a number among numbers but hex among hex
// ids, and "142" is a zero-padded number if other numbers of three digits have leading zeros.
type runClassifier struct {
	kinds   *byteKinds
	strings int
	runs    int                   // runs with digits
	mixed   [maxRunLength + 1]int // by length: number of runs with digits and letters
	padded  [maxDigits + 1]bool   // by length: whether a number has leading zeros
}

// learn examines a sample of v.
func (c *runClassifier) learn(v []string) {
	*c = runClassifier{kinds: c.kinds}
	step := max(1, len(v)/maxSamples)
	for i := 0; i < len(v); i += step {
		s := v[i]
		c.addSample(s[:min(len(s), maxSampleBytes)])
	}
}

func (c *runClassifier) addSample(s string) {
	c.strings++
	for i := 0; i < len(s); {
		if c.kinds[s[i]]&hexDigit == 0 {
			i++
			continue
		}
		r := c.kinds.runAt(s, i)
		i = r.to
		if r.digits() {
			c.runs++
		}
		switch {
		case r.len() == certainHexLength && c.kinds.isUUID(s[r.from:]):
			i = r.from + uuidLength
		case r.mixed() && (r.len() >= certainHexLength || c.kinds.bounded(s, r)):
			c.mixed[min(r.len(), maxRunLength)]++
		case !r.letters():
			c.addDigitRun(s[r.from:r.to])
		}
	}
}

func (c *runClassifier) addDigitRun(s string) {
	if s[0] == '0' && len(s) > 1 && len(s) <= maxDigits {
		c.padded[len(s)] = true
	}
}

// hex reports whether the run r of s is hex.
func (c *runClassifier) hex(s string, r run) bool {
	n := r.len()
	switch {
	case n >= certainHexLength:
		return r.mixed() || c.mixed[min(n, maxRunLength)] > 0 || !r.letters() && n > maxDigits
	case n >= minHex:
		return 8*c.mixed[n] >= c.strings && c.kinds.bounded(s, r)
	}
	return false
}
