// Package spool is a durable first-in-first-out queue of opaque items. An item whose Put returned nil survives the death of the process and a
// power cut until its Done; what was not done is taken again after a restart. So an item is delivered at least once.
//
// The files are logs of internal/wal, in a directory that nothing else writes to. A log is filled up to Options.LogSize, then the next one
// is begun. There are two kinds of records:
//
//	offset  bytes
//	     0      1   kind: 1 item, 2 done
//	item:
//	     1      8   when it was put, nanoseconds since the Unix epoch, little-endian
//	     9      8   weight, what the owner counts (spans), little-endian
//	    17      n   payload
//	done:
//	     1      8   epoch of the log that holds the item
//	     9      8   its sequence number there
//
// A done record stands in the log that is being written at that time, and is written with whatever is committed next: it costs no sync of its
// own. One that is lost means that its item is taken once more. A log is deleted once all its items are done.
//
//	Put ──▶ │ log 3: being written │ log 2: on disk only │ log 1: being read │ ──Take──▶ in flight ──Done──▶
//	         in memory while log 1                        read at once
//	         is the only other one
//
// Memory holds the items of at most two logs beside those in flight: of the one that is read, and of the one that is written. What is
// between them is on disk only. A log has no more records than one for each 512 bytes of Options.LogSize, since tiny items need memory, too.
//
// A log that cannot be read now is passed over, and read again later. What the disk does not give then, either, is lost: Options.Lost is told,
// and the file is set aside.
package spool
