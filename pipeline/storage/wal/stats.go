package wal

import "time"

// Stats counts what a log has done, as of its last write; Records is up to date.
type Stats struct {
	Records   uint64        // appended
	Groups    uint64        // written, each with one write
	Written   int64         // bytes in groups; a group that was written again counts twice, zero-filling does not count
	Size      int64         // bytes used of the part being written: what to compare with Options.Size
	Syncs     uint64        // that succeeded
	WriteTime time.Duration // sum over groups, zero-filling included
	SyncTime  time.Duration // sum over syncs
	// Rotations counts writes and syncs that failed but cost nothing, because the log went on in a new part. LastFailure is why; the
	// disk needs attention.
	Rotations   uint64
	LastFailure error
}

// Stats returns the counters.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}
