package scan

import (
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// bounds are a range of starts, both inclusive.
type Range struct{ From, To uint64 }

// window is what of a source is counted from rows: two ranges at most.
type Window []Range

// Contains reports whether a span that starts at start lies within the window.
func (w Window) Contains(start uint64) bool {
	for _, s := range w {
		if start >= s.From && start <= s.To {
			return true
		}
	}
	return false
}

// Touches reports whether rows of a block may lie within the window.
func (w Window) Touches(info *source.BlockInfo) bool {
	for _, s := range w {
		if info.Rows > 0 && info.MaxStart >= s.From && info.MinStart <= s.To {
			return true
		}
	}
	return false
}

// Minute is the length of a minute in nanoseconds.
const Minute = uint64(time.Minute)

// covers reports whether all rows of a block start within the window.
func (w Window) Covers(info *source.BlockInfo) bool {
	for _, s := range w {
		if info.MinStart >= s.From && info.MaxStart <= s.To {
			return true
		}
	}
	return false
}
