package stats

import (
	"encoding/binary"
	"sort"
)

// maxMinute is the minute of the latest possible start.
const maxMinute = (1<<64 - 1) / nanosPerMinute

// groupWriter encodes the groups and bodies of a section.
type groupWriter struct {
	groups, bodies []byte
	n              uint64
	next           uint64 // 1 + minute of the last finished group
	minute, points uint64 // of the current group; points is 0 before the first one
	from           int    // start of the body of the current group
	name           uint64 // of the last point of the current group
}

// point starts a point and appends its name; the caller appends the rest. Minutes must ascend, and
// names must ascend within a minute.
func (w *groupWriter) point(minute, name uint64) {
	w.begin(minute)
	w.bodies = binary.AppendUvarint(w.bodies, name-w.name)
	w.name = name
}

// begin starts a point without a name and reports whether it is the first of its minute.
func (w *groupWriter) begin(minute uint64) (first bool) {
	if first = w.points == 0 || minute != w.minute; first {
		w.finish()
		w.minute, w.from, w.name = minute, len(w.bodies), 0
	}
	w.points++
	return first
}

func (w *groupWriter) finish() {
	if w.points == 0 {
		return
	}
	w.groups = appendNumbers(w.groups, w.minute-w.next, w.points, uint64(len(w.bodies)-w.from))
	w.next = w.minute + 1
	w.n++
	w.points = 0
}

func (w *groupWriter) append(dst []byte) []byte {
	w.finish()
	dst = binary.AppendUvarint(dst, w.n)
	return append(append(dst, w.groups...), w.bodies...)
}

// group is one minute of a decoded section.
type group struct {
	minute uint64
	first  int // number of points in preceding groups
	points int
	body   []byte
}

// groups decodes the groups and bodies, which must be the rest of the section. Each point takes at
// least size bytes.
func (r *reader) groups(size int) []group {
	const minGroupSize = 3
	out := make([]group, 0, r.count(minGroupSize))
	lengths := make([]uint64, cap(out))
	next, first := uint64(0), 0
	for i := range lengths {
		minute := next + r.below(maxMinute+1-min(next, maxMinute+1), "minute out of range")
		points := r.uvarint()
		lengths[i] = r.uvarint()
		if points == 0 || points > lengths[i]/uint64(size) {
			r.fail("too few points in a minute")
		}
		out = append(out, group{minute: minute, first: first, points: int(points)})
		next = minute + 1
		first += int(points)
	}
	for i := range out {
		out[i].body = r.bytes(lengths[i])
	}
	if len(r.b) > 0 {
		r.fail("trailing data after the section")
	}
	return out
}

// inMinutes returns the groups of the minutes from first to last, both inclusive.
func inMinutes(groups []group, first, last uint64) []group {
	from := sort.Search(len(groups), func(i int) bool { return groups[i].minute >= first })
	to := sort.Search(len(groups), func(i int) bool { return groups[i].minute > last })
	return groups[from:max(from, to)]
}

// check decodes all points of all groups by calling point for each, and fails the reader if one is
// damaged.
func (r *reader) check(groups []group, point func(r *reader, first bool)) {
	for _, g := range groups {
		if r.err != nil {
			return
		}
		body := reader{b: g.body}
		for i := 0; i < g.points && body.err == nil; i++ {
			point(&body, i == 0)
		}
		if len(body.b) > 0 {
			body.fail("trailing data in a minute")
		}
		r.err = body.err
	}
}
