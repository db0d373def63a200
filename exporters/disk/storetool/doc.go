// Package storetool implements the commands that work on the folder of a span store: `tracing store
// inspect`, `verify`, `repair`, `export` and `load`. `load` sends exported files to a receiver; the
// others need no running server. All except `repair` also work while a server uses the folder.
//
//	              folder of the store
//	   seg/ ───────────┬──────────── log/                quarantine/
//	     │             │               │                     │
//	  segments      snapshot of     replayed into        listed by inspect,
//	  opened once   one moment      memtables            checked by repair
//	     └─────────────┬───────────────┘
//	        ┌──────────┼──────────────┐
//	     inspect     verify         export ──▶ Parquet or OTLP files, one folder per hour
//
//	repair: lock ──▶ verify ──▶ new segment with the readable rows ──▶ old one to quarantine
//
// # While a server uses the folder
//
// Segments never change, and an open segment stays readable after the server has deleted its file.
// Logs whose spans are not yet in a segment are replayed without changing them; spans that arrive
// after the replay are not seen. If the server replaces segments or logs meanwhile, the snapshot is
// retaken.
package storetool
