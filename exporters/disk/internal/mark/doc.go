// Package mark keeps deletions on disk: what was deleted, and up to where in the order of arrival.
//
// A deletion changes no file of spans. It is a mark, a small file of its own, which says which spans of a log epoch up to Through are
// hidden. Package mask hides them; merging leaves them out for good, and notes in the new segment the number of the last mark that it
// heeded (segment.Meta.Deletions). A mark applies to a file of spans that begins at or before Through and was made before the mark.
//
//	epochs  ──1───2───3───4───5──▶ arrival          segment of epochs 1-2, deletions 0: mark 7 applies
//	                  ▲                             segment of epochs 1-3, deletions 7: it was heeded
//	       mark 7: through 3                        memtable of epoch 4: came later, stays as it is
//
// One file for each mark, deletions/<number>.mark, the number in 16 hexadecimal digits. All numbers are little-endian:
//
//	"TDEL"       magic
//	version      uint32, 1
//	number       uint64, from 1; given once
//	through      uint64, a log epoch
//	made         int64, nanoseconds since the Unix epoch
//	from, to     uint64 each, bounds on the start of a span, both inclusive, nanoseconds since the Unix epoch
//	tenant       uint32 length, bytes
//	service      uint32 length, bytes; "" for any
//	traces       uint32 number of ids, 16 bytes each; none: the spans of the service, or all, within from and to
//	crc          uint32, CRC-32C of everything before
package mark
