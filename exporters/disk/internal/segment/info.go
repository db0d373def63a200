package segment

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// Meta holds the properties of a segment that the store provides.
type Meta struct {
	// Level is 0 for a flushed memtable, otherwise one more than the maximum level of the merged
	// segments.
	Level int
	// FirstEpoch and LastEpoch are the range of log epochs of the rows, both inclusive.
	FirstEpoch, LastEpoch uint64
	// Replaces names the segments whose rows this segment holds.
	Replaces []string
	// FirstArrival and LastArrival are the times of the first and last arrival of rows.
	FirstArrival, LastArrival time.Time
	// LastTombstone is the number of the last tombstone that was applied, 0 if there was none.
	LastTombstone uint64
}

// Info describes a segment.
type Info struct {
	Meta
	// Rows, Traces and Blocks are the numbers of rows, traces and blocks.
	Rows, Traces, Blocks int
	// Duplicates and Unreadable are the numbers of rows that were left out because they were
	// duplicates or damaged.
	Duplicates, Unreadable int
	// MinStart and MaxStart bound the starts of rows, in nanoseconds since the Unix epoch; both are
	// 0 if there are no rows.
	MinStart, MaxStart uint64
	// RowBytes is the size of all input rows in bytes.
	RowBytes int64
	// Size is the size of the file in bytes.
	Size int64
	// NameBytes is the size of the names of services and operations in bytes. If the segment has no
	// lists of names, it is an estimate.
	NameBytes int64
}

// append appends the encoded info section. Size and NameBytes are not part of it.
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
	if i.LastTombstone > 0 { // left out otherwise
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
		return i, fmt.Errorf("%d blocks exceed the maximum of %d", i.Blocks, maxBlocks)
	}
	return i, r.end()
}

// nanoseconds returns t in nanoseconds since the Unix epoch, 0 for the zero time.
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

// Part is a part of a segment file.
type Part struct {
	// Section is the name of a section, or "blocks".
	Section string
	// Name is the name of a part of row heads in blocks. It is "" for sections and columns.
	Name string
	// Column is the column that a part of a block holds, or nil.
	Column *rows.Column
	Bytes  int64
}

// Sizes reports the sizes of all parts of the file, which add up to its size. Parts of blocks are
// reported once per block. It reads all blocks but does not decode them. It returns the error of
// ctx, or a *source.DamageError.
func (s *Segment) Sizes(ctx context.Context, visit func(p Part)) error {
	rest := s.size
	add := func(p Part) {
		rest -= p.Bytes
		visit(p)
	}
	for k := kind(1); k < kinds; k++ {
		if e := &s.dir[k]; e.kind != 0 {
			add(Part{Section: k.String(), Bytes: e.length})
		}
	}
	b, err := s.load()
	if err != nil {
		return err
	}
	for i := range b.blocks {
		o, err := s.openBlock(ctx, b, i)
		if err != nil {
			return err
		}
		o.Sizes(func(name string, n int) { add(Part{Section: "blocks", Name: name, Bytes: int64(n)}) },
			func(id uint32, n int) { add(Part{Section: "blocks", Column: &b.tables.Columns[id], Bytes: int64(n)}) })
		o.Close()
	}
	visit(Part{Section: "header, directory, trailer", Bytes: rest})
	return nil
}
