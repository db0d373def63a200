package where

import (
	"math"
	"time"
)

// day is the number of nanoseconds in a day. Partitions use days in UTC.
const day = uint64(24 * time.Hour)

// maxDay is the last day that the type Date can hold.
const maxDay = math.MaxUint16

// Window returns the condition that a span starts between two times, both inclusive, in nanoseconds
// since the Unix epoch. It also selects partitions; see [Days].
func Window(from, to uint64) string {
	if from > to {
		return Never
	}
	var starts []string
	if from > 0 {
		starts = append(starts, "start >= "+Uint(from))
	}
	if to < math.MaxUint64 {
		starts = append(starts, "start <= "+Uint(to))
	}
	return all(Days(from, to), all(starts...))
}

// Days returns the condition that selects the partitions with the spans that start between two
// times, which may contain others. A span whose column odd is 0 is in the partition of the day on
// which it starts.
func Days(from, to uint64) string {
	var days []string
	if from > 0 {
		days = append(days, "day >= "+dateOf(from))
	}
	if to/day < maxDay {
		days = append(days, "day <= "+dateOf(to))
	}
	if len(days) == 0 {
		return Always
	}
	return Any(all(days...), "odd = 1")
}

// dateOf returns the literal of the day of a time, or the last day if it is later.
func dateOf(ns uint64) string {
	at := time.Unix(int64(min(ns/day, maxDay)*(day/uint64(time.Second))), 0).UTC()
	return "toDate('" + at.Format(time.DateOnly) + "')"
}

// Before returns the condition that a span comes after the position (start, trace_id) of another
// span, in the order newest first.
func Before(start uint64, id [16]byte) string {
	literal := TraceID(id)
	return Any("start < "+Uint(start), all("start = "+Uint(start), "trace_id < "+literal))
}
