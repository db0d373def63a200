// Package storetool has the commands for the folder of a span store: `tracing store inspect`, `verify`, `repair` and `export`. They work
// without the program that the store belongs to, and all but repair beside it.
//
//	              folder of the store
//	   seg/ ───────────┬──────────── log/                quarantine/
//	     │             │               │                     │
//	  segments      snapshot      memtables, by dry       only listed,
//	  opened once   of a moment   replay in memory        or repaired
//	     └─────────────┬───────────────┘
//	        ┌──────────┼──────────────┐
//	     inspect     verify         export ──▶ tables or requests, partitioned by hour
//
//	repair: lock ──▶ verify ──▶ merge of what can be read ──▶ new segment; the old file goes to the quarantine
//
// # Beside a running program
//
// Segments never change, so a snapshot opens them and reads on when they are deleted meanwhile. Logs that no segment holds yet are read as
// recovery would, without touching them: what is in them at that moment is seen, what comes later is not. While the snapshot is taken the
// program may replace segments and logs by others; then it is taken again.
package storetool
