package scan

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
)

// divided is what a query wants of a source's rows: those that statistics count, and those that are counted one by one.
type Split struct {
	Minutes    Range  // whole ones, both inclusive; nothing if there are none
	HasMinutes bool   // there are
	Rest       Window // starts outside of minutes
	All        Window // starts inside, too, for where statistics cannot be used
}

// divide divides the part of a window in which a source has rows.
//
//	window        ├──────────────────────────┤
//	minutes  │  :  │     │     │     │     │ :  │
//	          rest │        minutes        │rest
//
// A minute is whole if the source has no span of it outside of the window.
func SplitWindow(w Range, oldest, newest uint64) Split {
	within := Range{max(w.From, oldest), min(w.To, newest)}
	d := Split{All: Window{within}}
	d.Minutes = Range{stats.MinuteOf(within.From), stats.MinuteOf(within.To)}
	end := d.Minutes.To
	if w.From > oldest && w.From%Minute != 0 {
		d.Minutes.From++
	}
	if w.To < newest && (w.To+1)%Minute != 0 {
		d.Minutes.To-- // there is one before, or from is behind it
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
