package source

// DamageError reports that a part of a file is damaged. The rest of the file is readable.
type DamageError struct {
	File string
	Part string // block or section
	Rows int    // number of spans that cannot be read; 0: unknown
	Err  error
}

// Error names the file, the part and what is wrong.
func (e *DamageError) Error() string { return e.File + ": " + e.Part + " is damaged: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *DamageError) Unwrap() error { return e.Err }
