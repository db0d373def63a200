package directory

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// Segment is what the name of a segment file says.
type Segment struct {
	Day         string // of arrival, yyyymmdd in UTC
	Level       int    // 0: flushed from a memtable; else one more than those it was made of
	First, Last uint64 // log epochs that it holds, both inclusive
	Size        int64  // bytes; known of listed files
}

const (
	segmentSuffix = ".seg"
	dayFormat     = "20060102"
)

// NewSegment names a segment whose spans came at the time arrived.
func NewSegment(arrived time.Time, level int, first, last uint64) Segment {
	return Segment{Day: arrived.UTC().Format(dayFormat), Level: level, First: first, Last: last}
}

// String returns the name within the folder of segments.
func (s Segment) String() string {
	return fmt.Sprintf("%s/%d-%016x-%016x%s", s.Day, s.Level, s.First, s.Last, segmentSuffix)
}

// Holds reports whether the epoch lies in the range of the segment. That its spans are there follows only where the range is one epoch: a
// segment in the middle of what was merged may have been set aside at the time.
func (s Segment) Holds(epoch uint64) bool { return s.First <= epoch && epoch <= s.Last }

// Single reports whether the segment has the spans of one log.
func (s Segment) Single() bool { return s.First == s.Last }

// parseSegment reads a name. Other files in the folder are left alone.
func parseSegment(day, name string) (Segment, bool) {
	if _, err := time.Parse(dayFormat, day); err != nil || !strings.HasSuffix(name, segmentSuffix) {
		return Segment{}, false
	}
	s := Segment{Day: day}
	if _, err := fmt.Sscanf(name, "%d-%x-%x"+segmentSuffix, &s.Level, &s.First, &s.Last); err != nil {
		return Segment{}, false
	}
	return s, s.String() == path.Join(day, name) && s.First <= s.Last
}
