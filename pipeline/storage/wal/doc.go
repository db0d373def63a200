// Package wal is a group-committed log of opaque records. A record whose Commit returned nil
// survives a crash of the process and, in the default mode, a power failure.
//
// A directory holds the logs of one owner. A log has an epoch. It consists of one part file, or
// more after failed writes or syncs:
//
//	<dir>/
//	    00000000000000a1-0000.log     epoch a1, first part
//	    00000000000000a1-0001.log     second part: a write or sync of the first failed
//	    00000000000000b7-0000.log     another log
//	    spare-0.log                   file of a removed log, to be reused
//
// A part is a sequence of groups. Each group is written with one write and starts at a multiple of
// 512 bytes, so that no write touches a sector with older records. The rest of the file is zeros,
// or stale bytes if the file was a spare:
//
//	|<------------ group ------------->|<------- group ------->|
//	+--------+--------+--------+-------+--------+--------------+--------------------------+
//	| record | record | record | zeros | record | zeros        | preallocated or stale    |
//	+--------+--------+--------+-------+--------+--------------+--------------------------+
//	0                                 512 * n                 512 * m                     size
//
// A record, all numbers little-endian:
//
//	offset  bytes
//	     0      3   "WAL"
//	     3      1   version, 1
//	     4      4   length of the payload
//	     8      8   epoch: differs in stale records of a reused file
//	    16      8   sequence number: 1, 2, 3 ... within the epoch, across parts
//	    24      8   durable: highest sequence number known to be synced at the time
//	    32      4   CRC-32C of the payload
//	    36      4   CRC-32C of bytes 0 to 35
//	    40      n   payload
//	  40+n   0..7   zeros up to a multiple of 8
//
// All versions have 40 bytes of header with its checksum at 36. The header has its own checksum so
// that recovery can trust the length of a record with a broken payload: it skips the payload, never
// looks for records inside it, and reads every byte once. After a broken header, the search for the
// next one passes through payloads, which may come from strangers. An epoch that they cannot guess,
// such as the nanosecond at which the log was created, prevents them from forging records.
//
// # Failures
//
// A part is not used after a failed write or sync. The log continues in a new part and first writes
// all records to it that are not known to be durable. So a record may be in two parts; recovery
// delivers it once. If the new part fails too, the log has failed permanently, see ErrFailed.
//
// # Recovery
//
// Sequence numbers have no gaps, so recovery knows which records are missing. If a record is
// missing although a later one says that it was durable, the disk lost it: this is corruption, and
// it is reported. Other missing records were never acknowledged, with one exception: an interrupted
// write leaves whole sectors as they were, so if a record is unreadable in another way, the report
// says that records may be lost.
package wal
