package column

// Hint is what an Encoder has found out about the vectors of a column. Those of the next blocks are written in the same way without trying
// the others, but for one vector now and then. The zero value knows nothing.
type Hint struct {
	noTable   uint8 // for how many vectors of strings no table is tried
	noPlanes  uint8 // for how many vectors of codes planes are not tried
	noNumbers uint8 // for how many vectors of codes numbers are not tried
	noLearn   uint8 // for how many vectors of strings the grammar holds
	grammar   *grammar
}

const (
	// hintLasts is for how many vectors a finding is trusted.
	hintLasts = 15
	// minHint is how many values a vector has at least that says something about others.
	minHint = 256
)

// found notes that a form did not pay for a vector of n values.
func found(without *uint8, n int) {
	if n >= minHint {
		*without = hintLasts
	}
}

// use reports whether a form need not be tried.
func use(without *uint8) bool {
	if *without == 0 {
		return false
	}
	*without--
	return true
}
