package search

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
)

// divided is what a query wants of a source's rows: those that statistics count, and those that are counted one by one.
type divided struct {
	minutes bounds // whole ones, both inclusive; nothing if there are none
	some    bool   // there are
	rest    window // starts outside of minutes
	all     window // starts inside, too, for where statistics cannot be used
}

// divide divides the part of a window in which a source has rows.
//
//	window        ├──────────────────────────┤
//	minutes  │  :  │     │     │     │     │ :  │
//	          rest │        minutes        │rest
//
// A minute is whole if the source has no span of it outside of the window.
func divide(w bounds, oldest, newest uint64) divided {
	within := bounds{max(w.from, oldest), min(w.to, newest)}
	d := divided{all: window{within}}
	d.minutes = bounds{stats.MinuteOf(within.from), stats.MinuteOf(within.to)}
	end := d.minutes.to
	if w.from > oldest && w.from%minute != 0 {
		d.minutes.from++
	}
	if w.to < newest && (w.to+1)%minute != 0 {
		d.minutes.to-- // there is one before, or from is behind it
	}
	if d.minutes.from > d.minutes.to || d.minutes.to > end {
		return divided{rest: d.all, all: d.all}
	}
	d.some = true
	if begin := d.minutes.from * minute; within.from < begin {
		d.rest = append(d.rest, bounds{within.from, begin - 1})
	}
	if d.minutes.to < end {
		d.rest = append(d.rest, bounds{(d.minutes.to + 1) * minute, within.to})
	}
	return d
}
