// Package disk is the `disk` exporter: the embedded span store. Acknowledged spans are synced to
// its folder, searchable, and survive any crash.
//
//	Consume ──▶ memtable: interned rows ──▶ log: same rows, group commit, sync ──▶ nil
//	               │ full or old
//	               ▼
//	            frozen memtable ── background flush ──▶ segment: columns, filters, statistics
//	                                                               │ merge with neighbors, once,
//	                                                               ▼ at low priority
//	                                                            large segment
//	                                                               │ too old, or too much data
//	                                                               ▼
//	                                                            deleted
//
//	Find, Traces, catalogs ──▶ view: memtables and segments ──▶ find, aggregate, graph, names
//
// The internal packages: rows (vocabulary and row format), memtable, column, block and segment (the
// file format), stats (summaries in a segment), tombstone (deletions), source, scan, find,
// aggregate, graph and names (queries), directory (the folder). The write-ahead log is package
// pipeline/storage/wal. docs/storage-format.md describes the files.
//
// This package connects them. The exporter starts, stops and maintains these parts; each has its
// own fields and lock, and uses only parts above it:
//
//	intake.go, live.go                Consume; memtables and their logs
//	segments.go, handle.go            open segments; files to be deleted
//	retention.go, space.go, clock.go  expiry; full disks and reserved space; clock changes
//	deletions.go, delete.go, deletions_cleanup.go
//	                                  deletion on request; view.go: what a query reads
//	flush.go                          memtable to segment
//	merge.go, merge_pick.go, merge_pace.go
//	                                  few large segments instead of many small ones
//	restore.go, recover.go            segment files that were deleted; start
//	health.go, damage.go              what is wrong with the store
//	warm.go, queries.go, sampling.go  edge cache; queries; state of adaptive sampling
//	maintenance.go, status.go, metrics.go
//	                                  the maintenance loop; state for users and operators
//
// # Order of locks
//
// A goroutine that holds a lock takes only locks after it:
//
//	deletions.slot   held by one Delete, or by the removal of tombstones
//	intake.writing   held while spans are interned, logs are made and a tombstone is written
//	intake.mu        memtables, and why spans are refused
//	segments.mu      segments, their handles, and the state of the running merge
//	deletions.mu     tombstones and filters
//	retention.mu     reserved space
//
// Of these, only the first two are held across I/O. A flush replaces a memtable with a segment
// while it holds intake.mu and segments.mu. So a goroutine that holds intake.mu and then takes the
// segments sees all spans, each once. The locks of damagedFiles, restorer and samplingStore come
// last: their holders take no lock of this package. samplingStore holds its lock while it writes.
package disk
