package scan

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
)

// Split divides the rows of a source that a query selects into whole minutes, which statistics
// count, and the rest, which is read row by row.
type Split struct {
	Minutes    Range  // whole minutes, both inclusive
	HasMinutes bool   // Minutes is not empty
	Rest       Window // start times outside of Minutes
	All        Window // Rest and Minutes together, for sources whose statistics cannot be used
}

// SplitWindow divides the part of a window in which a source has rows.
//
//	window        ├──────────────────────────┤
//	minutes  │  :  │     │     │     │     │ :  │
//	          rest │        minutes        │rest
//
// A minute is whole if all spans of the source in it start within the window.
func SplitWindow(w Range, oldest, newest uint64) Split {
	within := Range{max(w.From, oldest), min(w.To, newest)}
	d := Split{All: Window{within}}
	d.Minutes = Range{stats.MinuteOf(within.From), stats.MinuteOf(within.To)}
	end := d.Minutes.To
	if w.From > oldest && w.From%Minute != 0 {
		d.Minutes.From++
	}
	if w.To < newest && (w.To+1)%Minute != 0 {
		d.Minutes.To-- // Minutes.To is above 0, or Minutes.From is after it
	}
	if d.Minutes.From > d.Minutes.To || d.Minutes.To > end {
		return Split{Rest: d.All, All: d.All}
	}
	d.HasMinutes = true
	if begin := d.Minutes.From * Minute; within.From < begin {
		d.Rest = append(d.Rest, Range{within.From, begin - 1})
	}
	if d.Minutes.To < end {
		d.Rest = append(d.Rest, Range{(d.Minutes.To + 1) * Minute, within.To})
	}
	return d
}
