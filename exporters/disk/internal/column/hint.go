package column

// Hint remembers which encodings were not worthwhile for the vectors of a column, so that an
// Encoder does not try them for each of the following blocks. They are retried after hintUses
// vectors. The zero value is an empty hint.
type Hint struct {
	skipTable   uint8 // number of string vectors for which no table is tried
	skipPlanes  uint8 // number of code vectors for which planes are not tried
	skipNumbers uint8 // number of code vectors for which numbers are not tried
	skipLearn   uint8 // number of string vectors for which classifier is used
	classifier  *runClassifier
}

const (
	// hintUses is the number of vectors for which a finding is used.
	hintUses = 15
	// minHintValues is the minimum number of values of a vector that leads to a finding.
	minHintValues = 256
)

// skipNext sets the counter of an encoding that was not worthwhile for a vector of n values.
func skipNext(counter *uint8, n int) {
	if n >= minHintValues {
		*counter = hintUses
	}
}

// skip reports whether an encoding is to be skipped for the current vector.
func skip(counter *uint8) bool {
	if *counter == 0 {
		return false
	}
	*counter--
	return true
}
