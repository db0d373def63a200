// Package spool is a durable first-in-first-out queue of opaque items. An item whose Put returned
// nil survives a crash of the process and a power failure until its Done. Items that are not done
// are redelivered after a restart, so every item is delivered at least once.
//
// The files are logs of package wal, in a directory that nothing else writes to. A log is filled up
// to Options.LogSize, then the next one is started. There are two kinds of records:
//
//	offset  bytes
//	     0      1   kind: 1 item, 2 done
//	item:
//	     1      8   time of Put, nanoseconds since the Unix epoch, little-endian
//	     9      8   weight, as counted by the owner (spans), little-endian
//	    17      n   payload
//	done:
//	     1      8   epoch of the log that holds the item
//	     9      8   its sequence number there
//
// A done record goes to the log that is being written at that time, together with whatever is
// committed next: it needs no sync of its own. If it is lost, its item is taken once more. A log is
// deleted when all its items are done.
//
//	Put ─▶ │ log 3: written │ log 2: on disk only │ log 1: read │ ─Take─▶ in flight ─Done─▶
//	         (in memory if log 1                    (all together)
//	         is the only other log)
//
// Memory holds the items in flight and the items of at most two logs: the one being read and the
// one being written. Logs between them are on disk only. Because small items need memory too, a log
// has at most one record for each 512 bytes of Options.LogSize.
//
// A log that cannot be read is skipped and reread later. Data that the disk still does not return
// then is lost: Options.Lost is called and the file is moved to the quarantine. A damaged end of a
// log may look like an interrupted write, unless a checkpoint says what was there.
package spool
