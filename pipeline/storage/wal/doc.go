// Package wal is a group-committed log of opaque records. A record whose Commit returned nil survives the death of the process and, in
// the default mode, a power cut.
//
// A directory holds the logs of one owner. A log has an epoch; it is one part file, or more after failed writes or syncs:
//
//	<dir>/
//	    00000000000000a1-0000.log     epoch a1, first part
//	    00000000000000a1-0001.log     its second part: the first one failed a write or a sync
//	    00000000000000b7-0000.log     another log
//	    spare-0.log                   file of a log that is gone, to be used again
//
// A part is a row of groups, each written with one write and beginning at a multiple of 512 bytes, so that no write touches a sector
// that holds older records. The rest of the file is zeroes, or stale bytes if the file is a former spare:
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
//	     8      8   epoch: stale records of a former spare have another one
//	    16      8   sequence number: 1, 2, 3 ... within the epoch, through all parts
//	    24      8   durable: the highest sequence number known to be synced when the record was appended
//	    32      4   CRC-32C of the payload
//	    36      4   CRC-32C of bytes 0 to 35
//	    40      n   payload
//	  40+n   0..7   zeros up to a multiple of 8
//
// All versions keep 40 bytes of header with its checksum at 36. The header has a checksum of its own so that recovery can trust the
// length of a record whose payload is broken: it steps over the payload, never looks for records inside it, and reads every byte once.
// Where a header is broken the search for the next one goes through payloads, which may come from strangers. An epoch that they cannot
// guess, such as the nanosecond at which the log was made, keeps records that they forged out of the log.
//
// # Failures
//
// A write or sync that failed is final for its part. The log goes on in a new part, to which it first writes all records that are not
// known to be durable; so a record may stand in two parts, and recovery takes it once. If the new part fails too, the log has failed
// for good: see ErrFailed.
//
// # Recovery
//
// Sequence numbers have no gaps, so recovery knows which records are missing. A record that is missing though a later one says that it
// was durable has been lost by the disk: that is corruption, and reported. Any other missing record was never promised to survive.
package wal
