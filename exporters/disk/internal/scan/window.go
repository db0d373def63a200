package scan

import (
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// bounds are a range of starts, both inclusive.
type Range struct{ From, To uint64 }

// window is what of a source is counted from rows: two ranges at most.
type Window []Range

func (w Window) Contains(start uint64) bool {
	for _, s := range w {
		if start >= s.From && start <= s.To {
			return true
		}
	}
	return false
}

func (w Window) Touches(info *source.BlockInfo) bool {
	for _, s := range w {
		if info.Rows > 0 && info.MaxStart >= s.From && info.MinStart <= s.To {
			return true
		}
	}
	return false
}

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
