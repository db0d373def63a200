// Package tombstone records deletions on disk and hides the deleted spans from readers.
//
// A deletion does not change the files that hold spans. It is recorded as a [Tombstone], a small
// file that says which spans of the log epochs up to Through are deleted. A [Filter] hides these
// spans of a memtable or segment from queries. A merge leaves them out for good and records in the
// new segment the number of the last tombstone that it applied (segment.Meta.LastTombstone).
// A tombstone applies to a memtable or segment whose first epoch is not after Through and that was
// written before the tombstone.
//
//	epochs  ──1───2───3───4───5──▶ arrival    segment of epochs 1-2, none applied: 7 applies
//	                  ▲                       segment of epochs 1-3, tombstone 7 already applied
//	  tombstone 7: through 3                  memtable of epoch 4: came later, is not affected
//
// # File format
//
// Each tombstone is a file, deletions/<number>.mark, with the number in 16 hexadecimal digits, and
// a copy of it, deletions/<number>.copy, which is used if the first file is damaged or missing. All
// numbers are little-endian:
//
//	"TDEL"       magic
//	version      uint32, 1
//	number       uint64, from 1; never reused
//	through      uint64, a log epoch
//	made         int64, nanoseconds since the Unix epoch
//	from, to     uint64 each, inclusive bounds of the span start, nanoseconds since the Unix epoch
//	tenant       uint32 length, bytes
//	service      uint32 length, bytes; "" for any
//	traces       uint32 number of ids, 16 bytes each; 0: the spans of the service, or of all
//	             services, that started between from and to
//	crc          uint32, CRC-32C of all preceding bytes
//
// # Filter
//
//	tombstones ──▶ rules that may hide spans of the source
//	                     │ evaluated once: reads the blocks that may have hidden rows
//	                     ▼
//	  block 0   ────────────────  nothing hidden: passed through
//	  block 1   ──xx────x───────  hidden rows (one bit each), shapes and resources of visible rows
//	  block 2   xxxxxxxxxxxxxxxx  all rows hidden
//
//	  row of the filtered block  0 1 2 3 4 5 6 7 8 9 ...
//	  row of the inner block     0 1 4 5 6 7 9 ...
//
// The precomputed statistics of a segment include hidden rows. A filter therefore does not
// implement source.Statistics, and its rows are counted one by one. Its vocabulary is reduced to
// what visible rows use: shapes and resources of hidden rows only are blank, and dictionaries are
// not available.
//
// Evaluating a rule costs one look-up for each deleted trace; for a service or a time range it
// costs reading the shapes and starts of the blocks that may have matching spans. The result takes
// one bit per row, and a few words for each block with hidden rows.
package tombstone
