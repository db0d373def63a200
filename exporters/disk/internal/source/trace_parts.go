package source

import (
	"bytes"
	"cmp"
	"context"

	"github.com/cespare/xxhash/v2"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TraceHashBits is the number of bits of a trace hash.
const TraceHashBits = 40

// TraceHash returns the hash by which the parts of a trace are found in all sources. Different
// traces may have the same hash. It is part of the file format.
func TraceHash(tenant string, id otlpdata.TraceID) uint64 {
	var b [64]byte
	return xxhash.Sum64(append(append(b[:0], id[:]...), tenant...)) >> (64 - TraceHashBits)
}

// TraceParts is implemented by sources that can list the traces of all tenants without reading all
// blocks.
type TraceParts interface {
	// TraceParts returns a reader of the parts of all traces. It may be used while the source is
	// part of a view. An error is a *DamageError. A nil reader means that the parts are unknown.
	TraceParts() (PartReader, error)
}

// PartReader lists the parts of the traces of a source in ascending order of their hashes. It is
// not safe for concurrent use.
type PartReader interface {
	// Parts returns an estimate of the number of parts.
	Parts() int
	// Before appends the remaining parts whose hash is less than limit. It returns the error of ctx
	// or a *DamageError.
	Before(ctx context.Context, dst []TracePart, limit uint64) ([]TracePart, error)
}

// TracePart describes the rows of a trace in one block, or in all blocks.
type TracePart struct {
	Hash     uint64 // see TraceHash
	Base     uint64 // nanoseconds since the Unix epoch
	Block    int32  // or AnyBlock
	Root     PartRoot
	Start    Step // from Base to the earliest start
	Duration Step // from the earliest start to the latest end
	Bounds   PartBounds
}

// AnyBlock stands for all blocks of a source.
const AnyBlock int32 = -1

// PartBounds says how reliable Start, Duration and Root of a part are.
type PartBounds uint8

// The values of PartBounds.
const (
	Unbounded PartBounds = iota // Start, Duration and Root are unknown
	// AtMost means that some rows may be hidden. The others start no earlier and end no later. Root
	// is unknown.
	AtMost
	Exact // up to the size of a step
)

// PartRoot identifies the root span of a part by its shape. Zero means that it is unknown,
// NoRootSpan that all spans have parents.
type PartRoot uint32

// NoRootSpan is the root of a part in which all spans have parents.
const NoRootSpan PartRoot = 1

// NewPartRoot returns the root of a part. A span with a parent is the root only if the trace has no
// other parts; rootSpan is false for it.
func NewPartRoot(shape uint32, rootSpan bool) PartRoot {
	switch {
	case shape >= 1<<30:
		return 0
	case rootSpan:
		return PartRoot(2 + shape<<1)
	}
	return PartRoot(2 + shape<<1 + 1)
}

// Shape returns the arguments of NewPartRoot. ok is false if there are none.
func (r PartRoot) Shape() (shape uint32, rootSpan, ok bool) {
	return uint32(r-2) >> 1, r&1 == 0, r > NoRootSpan
}

// RootFinder determines the root of a part from its rows. The zero value has seen no rows.
type RootFinder struct {
	rank      rootRank
	ambiguous bool
	shape     uint32
	start     uint64
	id        otlpdata.SpanID
}

// rootRank ranks how well a row qualifies as the root, see tracestore.Summary.
type rootRank uint8

const (
	noSpan rootRank = iota
	anySpan
	orphanSpan // its parent is not in the source
	rootSpan
)

// Add adds a row. stored reports whether the trace has a row with a span id in this source; nil
// means that this is unknown.
func (f *RootFinder) Add(shape uint32, start uint64, id, parent otlpdata.SpanID, stored func(otlpdata.SpanID) bool) {
	rank := anySpan
	switch {
	case parent.IsZero():
		rank = rootSpan
	case stored == nil || f.rank == rootSpan:
		return
	case !stored(parent):
		rank = orphanSpan
	}
	if rank < f.rank {
		return
	}
	if rank == f.rank {
		switch c := cmp.Or(cmp.Compare(start, f.start), bytes.Compare(id[:], f.id[:])); {
		case c > 0:
			return
		case c == 0:
			f.ambiguous = true // names decide which of them is the root
			return
		}
	}
	*f = RootFinder{rank: rank, shape: shape, start: start, id: id}
}

// Root returns the root of the rows that were added.
func (f *RootFinder) Root() PartRoot {
	switch {
	case f.ambiguous:
		return 0
	case f.rank == noSpan:
		return NoRootSpan
	}
	return NewPartRoot(f.shape, f.rank == rootSpan)
}
