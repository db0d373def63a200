package disk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
)

// drawSegments makes segments from a drawing. Each word is a segment, one minute after the previous
// one, with 10 rows, 1 trace and 100 bytes. The letter is the day; a sign may follow.
//
//	a   segment of day a           a+  with 60 rows            a!  cannot be merged
//	a=  merged segment             a~  its log still exists    a#  with 60 traces
//	a%  with 60 bytes of names
//	.   memtable that is not flushed yet
func drawSegments(drawing string) (all []*handle, unflushed []uint64) {
	for i, word := range strings.Fields(drawing) {
		epoch := uint64(10 * (i + 1))
		if word == "." {
			unflushed = append(unflushed, epoch)
			continue
		}
		name := directory.Segment{Day: word[:1], First: epoch, Last: epoch}
		arrived := newClock().now().Add(time.Duration(i) * time.Minute)
		info := segment.Info{Rows: 10, Traces: 1, Size: 100, Meta: segment.Meta{FirstArrival: arrived, LastArrival: arrived}}
		h := &handle{}
		switch word[1:] {
		case "+":
			info.Rows = 60
		case "#":
			info.Traces = 60
		case "%":
			info.NameBytes = 60
		case "=":
			name.Level, name.Last = 1, epoch+5
		case "!":
			h.unmergeable = true
		case "~":
			unflushed = append(unflushed, epoch)
		}
		h.name, h.info = name, info
		all = append(all, h)
	}
	return all, unflushed
}

func TestPick(t *testing.T) {
	for _, c := range []struct {
		name, drawing, want string // want: index of the first and last merged word
		change              func(*mergeRules)
	}{
		{"nothing", "", "", nil},
		{"too few", "b b b", "", nil},
		{"too many names for more", "b b% b b% b", "0-2", nil},
		{"enough", "b b b b", "0-3", nil},
		{"as many as possible", "b b b b b b b b b", "0-5", nil},
		{"the oldest first", "b= b b b b b", "1-5", nil},
		{"two of a past day", "a a", "0-1", nil},
		{"one of a past day", "a", "", nil},
		{"days do not mix", "a a b b", "0-1", nil},
		{"nothing to do", "a= b= b b", "", nil},
		{"two between merged ones", "b= b b b=", "1-2", nil},
		{"one between merged ones", "b= b b=", "", nil},
		{"two before a damaged one", "b b b! b", "0-1", nil},
		{"after a damaged one", "b! b b b b", "1-4", nil},
		{"unflushed memtable in between", "b b . b b b b", "3-6", nil},
		{"unflushed memtable at the end", "b b b b .", "0-3", nil},
		{"too few before an unflushed memtable", "b b .", "", nil},
		{"first log still exists", "b~ b b b b", "1-4", nil},
		{"last log still exists", "b b b~", "", nil},
		{"row limit", "b+ b b b b b", "0-4", nil},
		{"row limit after two", "b b+ b+", "0-1", nil},
		{"row limit after one", "b+ b+ b", "1-2", func(r *mergeRules) { r.today = "c" }},
		{"trace limit", "b# b b# b b b b", "0-1", nil},
		{"byte limit", "b b b b b b", "0-2", func(r *mergeRules) { r.bytes = 300 }},
		{"arrival limit", "b b b b b b", "0-2", func(r *mergeRules) { r.arrivals = 2 * time.Minute }},
		{"arrivals too far apart", "b b b", "", func(r *mergeRules) { r.arrivals = time.Second }},
		{"no space", "b b b b", "", func(r *mergeRules) { r.fits = func(bytes, older int64) bool { return false } }},
		{"space if older ones expire", "b b b b b b b b", "2-7", func(r *mergeRules) {
			r.fits = func(bytes, older int64) bool { return older >= 200 }
		}},
		{"space for few", "b b b b b a a", "3-4", func(r *mergeRules) {
			r.fits = func(bytes, older int64) bool { return bytes <= 200 }
		}},
	} {
		all, unflushed := drawSegments(c.drawing)
		r := &mergeRules{minSegments: 4, maxSegments: 6, rows: 100, traces: 100, nameBytes: 100, today: "b", unflushed: unflushed,
			fits: func(bytes, older int64) bool { return true }}
		if c.change != nil {
			c.change(r)
		}
		got := ""
		if run := r.pick(all); run != nil {
			got = fmt.Sprintf("%d-%d", run[0].name.First/10-1, run[len(run)-1].name.First/10-1)
			if at := slices.Index(all, run[0]); !slices.Equal(run, all[at:at+len(run)]) {
				t.Errorf("%s: picked segments are not adjacent: %v", c.name, run)
			}
		}
		if got != c.want {
			t.Errorf("%s: drawing %q: picked %q, want %q", c.name, c.drawing, got, c.want)
		}
	}
}

// TestSpace checks when a new segment fits, now or after older ones have expired.
func TestSpace(t *testing.T) {
	for name, c := range map[string]struct {
		space         space
		bytes, older  int64
		has, fitsOnce bool
	}{
		"enough":                   {space{folder: 10, disk: 10}, 10, 0, true, true},
		"the folder is full":       {space{folder: 9, disk: 10}, 10, 0, false, false},
		"older ones expire":        {space{folder: -5, disk: 10}, 10, 15, false, true},
		"too few older ones":       {space{folder: -6, disk: 10}, 10, 15, false, false},
		"the disk is full":         {space{folder: 10, disk: 9}, 10, 100, false, false},
		"older ones free the disk": {space{folder: 10, disk: 9, drops: true}, 10, 1, false, true},
		"queries hold the space":   {space{folder: 10, disk: 0, drops: true, doomed: 10}, 10, 0, false, true},
	} {
		if has, fits := c.space.has(c.bytes), c.space.fits(c.bytes, c.older); has != c.has || fits != c.fitsOnce {
			t.Errorf("%s: has %v, fits %v; want %v, %v", name, has, fits, c.has, c.fitsOnce)
		}
	}
}
