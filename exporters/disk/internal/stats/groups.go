package stats

import (
	"encoding/binary"
	"sort"
)

// maxMinute is the minute of the greatest start.
const maxMinute = (1<<64 - 1) / nanosPerMinute

// groupWriter puts the bodies of a section together, minute by minute.
type groupWriter struct {
	groups, bodies []byte
	n              uint64
	next           uint64 // the minute behind the last finished group
	minute, points uint64 // of the group that is being written; it has none before the first
	from           int    // where its body begins
	name           uint64 // of its last point
}

// point begins a point: its name is appended to the bodies, and the caller appends the rest. Minutes, and names in each, ascend.
func (w *groupWriter) point(minute, name uint64) {
	w.begin(minute)
	w.bodies = binary.AppendUvarint(w.bodies, name-w.name)
	w.name = name
}

// begin begins a point, all of which the caller appends, and reports whether it is the first one of its minute.
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

// group is one minute of a section that was read.
type group struct {
	minute uint64
	first  int // number of its first point, of all groups together
	points int
	body   []byte
}

// groups reads the groups and their bodies, and nothing may follow. No point takes less than size bytes.
func (r *reader) groups(size int) []group {
	const leastBytes = 3
	out := make([]group, 0, r.count(leastBytes))
	lengths := make([]uint64, cap(out))
	next, first := uint64(0), 0
	for i := range lengths {
		minute := next + r.below(maxMinute+1-min(next, maxMinute+1), "a minute is out of range")
		points := r.uvarint()
		lengths[i] = r.uvarint()
		if points == 0 || points > lengths[i]/uint64(size) {
			r.fail("a minute has less than it says")
		}
		out = append(out, group{minute: minute, first: first, points: int(points)})
		next = minute + 1
		first += int(points)
	}
	for i := range out {
		out[i].body = r.bytes(lengths[i])
	}
	if len(r.b) > 0 {
		r.fail("there is more than it says")
	}
	return out
}

// within returns the groups of the minutes from first to last, both included.
func within(groups []group, first, last uint64) []group {
	from := sort.Search(len(groups), func(i int) bool { return groups[i].minute >= first })
	to := sort.Search(len(groups), func(i int) bool { return groups[i].minute > last })
	return groups[from:max(from, to)]
}

// check reads all points of all groups with point, which is called for each, and fails the reader where one is damaged.
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
			body.fail("a minute has more than it says")
		}
		r.err = body.err
	}
}
