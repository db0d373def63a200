package segment

import (
	"encoding/binary"
	"errors"
	"time"
)

// Meta is what the store knows about a segment beside its rows.
type Meta struct {
	// Level is 0 for a flushed memtable and 1 for a merge.
	Level int
	// FirstEpoch and LastEpoch are the log epochs whose rows the segment has, both inclusive.
	FirstEpoch, LastEpoch uint64
	// Replaces names the segments whose rows this one has, too.
	Replaces []string
	// FirstArrival and LastArrival are when the rows arrived.
	FirstArrival, LastArrival time.Time
	// LastTombstone is the number of the last deletion whose spans were left out; 0 where there was none.
	LastTombstone uint64
}

// Info describes a segment.
type Info struct {
	Meta
	// Rows is how many rows the segment has, Traces how many traces, Blocks how many blocks.
	Rows, Traces, Blocks int
	// Duplicates is how many rows were left out because another one is the same, Unreadable how many because they were damaged.
	Duplicates, Unreadable int
	// MinStart and MaxStart bound the starts of the rows, in nanoseconds since the Unix epoch; both are 0 if there are none.
	MinStart, MaxStart uint64
	// RowBytes is the length of all rows as they were given.
	RowBytes int64
	// Size is the length of the file.
	Size int64
}

// append appends the info section. Size is not part of it: it is the length of the file.
func (i *Info) append(dst []byte) []byte {
	for _, v := range []uint64{uint64(i.Level), i.FirstEpoch, i.LastEpoch, uint64(i.Rows), uint64(i.Traces), uint64(i.Blocks),
		uint64(i.Duplicates), uint64(i.Unreadable), i.MinStart, i.MaxStart, uint64(i.RowBytes)} {
		dst = binary.AppendUvarint(dst, v)
	}
	dst = binary.AppendVarint(dst, nanoseconds(i.FirstArrival))
	dst = binary.AppendVarint(dst, nanoseconds(i.LastArrival))
	dst = binary.AppendUvarint(dst, uint64(len(i.Replaces)))
	for _, name := range i.Replaces {
		dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
	}
	if i.LastTombstone > 0 { // older files end before this field
		dst = binary.AppendUvarint(dst, i.LastTombstone)
	}
	return dst
}

func readInfo(b []byte) (Info, error) {
	r := reader{b: b}
	i := Info{Meta: Meta{Level: r.int(), FirstEpoch: r.uvarint(), LastEpoch: r.uvarint()}, Rows: r.int(), Traces: r.int(), Blocks: r.int(),
		Duplicates: r.int(), Unreadable: r.int(), MinStart: r.uvarint(), MaxStart: r.uvarint(), RowBytes: int64(r.int())}
	i.FirstArrival, i.LastArrival = moment(r.varint()), moment(r.varint())
	for n := r.int(); n > 0 && r.err == nil; n-- {
		i.Replaces = append(i.Replaces, string(r.take(r.int())))
	}
	if r.err == nil && len(r.b) > 0 {
		i.LastTombstone = r.uvarint()
	}
	if i.Blocks > maxBlocks {
		return i, errors.New("too many blocks")
	}
	return i, r.end()
}

// nanoseconds gives the zero time a number of its own, which the nanoseconds since 1970 do not have for it.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func moment(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
