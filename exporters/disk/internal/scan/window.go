package scan

import (
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// Range is a range of start times in Unix nanoseconds, both ends inclusive.
type Range struct{ From, To uint64 }

// Window is a set of start times: a list of at most two ranges.
type Window []Range

// Contains reports whether start lies within the window.
func (w Window) Contains(start uint64) bool {
	for _, s := range w {
		if start >= s.From && start <= s.To {
			return true
		}
	}
	return false
}

// Touches reports whether a block may have rows within the window.
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

// Covers reports whether all rows of a block start within the window.
func (w Window) Covers(info *source.BlockInfo) bool {
	for _, s := range w {
		if info.MinStart >= s.From && info.MaxStart <= s.To {
			return true
		}
	}
	return false
}
