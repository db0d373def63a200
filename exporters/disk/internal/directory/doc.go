// Package directory manages the folder of a span store: its layout, its version, its lock, and the
// reserve for a full disk.
//
//	FORMAT                             the version of the layout, and its checksum
//	LOCK                               locked by the process that uses the folder
//	reserve                            space released when the disk is full, so that a flush
//	                                   can still free the log
//	log/<epoch>-<part>.log             spans not yet in a segment; see package wal
//	segments.list                      the segments, to notice missing files; see list.go
//	seg/<yyyymmdd>/<level>-<first>-<last>.seg
//	                                   segments, by day of arrival, merge level, and log epochs
//	deletions/<number>.mark            deletions on request; see package tombstone
//	sampling.state                     state of adaptive sampling; see exporters/disk
//	quarantine/                        unreadable files, unchanged
//	quarantine/deletions/              deletions that only quarantined segments need
//	quarantine/<epoch>.damage.txt      description of the damage of a log; see [Dir.MarkDamaged]
//	quarantine/<segment>.damage.txt    note that a segment is missing; see [Dir.MarkMissing]
//	**/*.tmp                           unfinished files of a process that died
//
// There is no manifest: segments.list is needed only to notice losses. The name of a file says what
// it contains, and a merged segment names the segments that it replaces. A log is obsolete when a
// readable segment was made from it or from its segment. A segment is obsolete when a readable
// segment names it.
package directory
