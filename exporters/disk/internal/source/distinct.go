package source

// Distinct is implemented by sources that are no [Statistics], and may hold no duplicates all the same.
type Distinct interface {
	// Distinct reports whether the source is known to hold no duplicates.
	Distinct() bool
}
