package wal

import "time"

// Stats are the counters of a log as of its last write; Records is up to date.
type Stats struct {
	Records   uint64        // appended
	Groups    uint64        // written
	Written   int64         // bytes in groups, including repeated ones, without filling
	Size      int64         // bytes used in the current part; compare with Options.Size
	Syncs     uint64        // successful ones
	WriteTime time.Duration // sum over groups, including filling with zeros
	SyncTime  time.Duration // sum over syncs
	// Rotations counts failed writes and syncs without loss, because the log continued in a new
	// part. LastFailure is the latest cause; the disk needs attention.
	Rotations   uint64
	LastFailure error
}

// Stats returns the counters.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}
