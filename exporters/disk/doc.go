// Package disk is the exporter "disk": the embedded span store. What it acknowledged is synced to its folder, searchable, and there again
// after any crash.
//
//	Consume ──▶ memtable: interned rows ──▶ log: the same rows, group-committed, synced ──▶ nil
//	               │ full, or old
//	               ▼
//	            frozen memtable ── flush, in the background ──▶ segment: columns, filters, statistics; its log goes
//	                                                              │ merged with its neighbours, once, at low priority
//	                                                              ▼
//	                                                            segment: many times as large
//	                                                              │ too old, or too much
//	                                                              ▼ deleted
//	Find, Traces, catalogs ──▶ view of memtables and segments ──▶ search
//
// The rooms, all below internal: rows (vocabulary and row format), memtable, column, block and segment (the file format), stats (what a
// segment knows in sum), mark and mask (what was deleted), source and search (queries), directory (the folder). The log is the project's pipeline/storage/wal. Here is what ties them
// together: config.go, intake.go (Consume), live.go (a memtable and its log), flush.go (segments), handle.go (a segment's file, from its
// opening to its end), merge.go, merge_pick.go and merge_pace.go (few large segments of many small ones), keeper.go (what runs in the
// background), recover.go (start), view.go (what a query reads), retention.go, clock.go (clocks that are set), space.go (full disks),
// metrics.go; delete.go, deletions.go and admin.go (deletion on request: marks, and the masks that they put over segments and memtables).
// docs/storage-format.md describes the files.
package disk
