package directory

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// Segment holds the parts of the name of a segment file.
type Segment struct {
	Day         string // of arrival, yyyymmdd in UTC
	Level       int    // 0: flushed from a memtable; otherwise one more than the maximum level of its inputs
	First, Last uint64 // first and last log epoch, both inclusive
	Size        int64  // in bytes; set only for listed files
}

const (
	segmentSuffix = ".seg"
	dayFormat     = "20060102"
)

// NewSegment returns the name of a segment whose spans arrived at the given time.
func NewSegment(arrived time.Time, level int, first, last uint64) Segment {
	return Segment{Day: arrived.UTC().Format(dayFormat), Level: level, First: first, Last: last}
}

// String returns the name within the folder of segments.
func (s Segment) String() string {
	return fmt.Sprintf("%s/%d-%016x-%016x%s", s.Day, s.Level, s.First, s.Last, segmentSuffix)
}

// InRange reports whether the epoch lies in the range of the segment. Unless the range is a single
// epoch, this does not imply that the segment holds the spans of the epoch: a segment in the middle
// of the merged range may have been in quarantine during the merge.
func (s Segment) InRange(epoch uint64) bool { return s.First <= epoch && epoch <= s.Last }

// IsSingleEpoch reports whether the segment holds the spans of a single log.
func (s Segment) IsSingleEpoch() bool { return s.First == s.Last }

// parseSegment parses a file name. It returns false for other files.
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
