// Package disk is the exporter "disk": the embedded span store. Acknowledged spans are synced to
// its folder, searchable, and survive any crash.
//
//	Consume ──▶ memtable: interned rows ──▶ log: same rows, group commit, sync ──▶ nil
//	               │ full or old
//	               ▼
//	            frozen memtable ── background flush ──▶ segment: columns, filters, statistics
//	                                                               │ merge with neighbours, once,
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
// This package connects them:
//
//	config.go, intake.go              settings; Consume
//	live.go, flush.go, handle.go      a memtable and its log; memtable to segment; an open segment
//	merge.go, merge_pick.go, merge_pace.go
//	                                  few large segments instead of many small ones
//	maintenance.go, recover.go        background work; start
//	view.go                           what a query reads
//	retention.go, clock.go, space.go  expiry; clock changes; full disks
//	delete.go, deletions.go, admin.go deletion on request
//	warm.go, sampling.go, metrics.go  edge cache; state of adaptive sampling; metrics
package disk
