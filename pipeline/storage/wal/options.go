package wal

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Limits that cannot be configured.
const (
	// MaxPayload is the maximum size of a payload in bytes: a request of 64 MiB and what its owner
	// adds.
	MaxPayload = 64<<20 + 64<<10
	// maxParts bounds the failures that one log survives, and the files that its recovery opens at
	// once.
	maxParts = 16
	// maxDamage bounds the places in a Report and the gaps that recovery keeps separately.
	maxDamage = 1000
	// maxUnreadable is the number of unreadable sectors after which recovery skips the rest of a
	// file.
	maxUnreadable = 256
)

// Errors that callers distinguish; all are wrapped.
var (
	// ErrFailed means that the log accepts no more records: a write or sync failed and so did the
	// attempt to continue in a new file, or the file was moved or deleted. It wraps the cause, for
	// vfs.NoSpace and vfs.ErrMoved. Acknowledged records are not affected. The owner creates a new
	// log.
	ErrFailed = errors.New("log has failed")
	// ErrFull means that Options.MaxPending bytes wait to be written; nothing was appended. Commit
	// frees capacity.
	ErrFull = errors.New("log is full: too many bytes wait to be written")
	// ErrTooLarge means that a payload is longer than MaxPayload.
	ErrTooLarge = errors.New("record is too large for the log")
	// ErrClosed means that the log was closed.
	ErrClosed = errors.New("log is closed")
	// ErrVersion means that a log holds records of another version of the format.
	ErrVersion = errors.New("log has an unsupported format version")
)

// Mode says what is true of a record when Commit returns nil. In every mode it has been written: a
// crash of the process loses nothing that was committed.
type Mode string

const (
	// SyncAlways: the record is synced. A power failure loses nothing that was committed.
	SyncAlways Mode = "always"
	// SyncInterval: the record will be synced within Options.Interval. A power failure loses what
	// was committed since the last sync.
	SyncInterval Mode = "interval"
	// SyncOS: the log never syncs; the operating system decides when to write to disk.
	SyncOS Mode = "os"
)

// Options are common to all logs in a Dir. A zero field means its default.
type Options struct {
	// Mode defaults to SyncAlways.
	Mode Mode
	// Interval is the time between syncs in SyncInterval. Default: 1 s.
	Interval time.Duration
	// MinGap is the minimum time between the end of a sync and the next group in SyncAlways, for
	// disks with slow syncs. Default: 0.
	MinGap time.Duration
	// MaxPending is the number of bytes that may wait to be written before Append returns ErrFull.
	// Default: 8 MiB. One record may exceed it. Records that are written but not synced are also
	// kept, at most the same number of bytes, to be rewritten if the sync fails; at this number,
	// SyncInterval syncs early.
	MaxPending int
	// Step is the number of bytes by which files are filled with zeros ahead of the write position.
	// Default: 4 MiB.
	Step int64
	// Size is the file size at which filling in whole steps ends. Default: 64 MiB. Logs may grow
	// beyond it; files larger than Size+Step do not become spares.
	Size int64
	// Spares is the maximum number of files kept for new logs. Default: 2. A negative number means
	// none.
	Spares int
}

func (o Options) withDefaults() Options {
	o.Mode = cmp.Or(o.Mode, SyncAlways)
	o.Interval = cmp.Or(o.Interval, time.Second)
	o.MaxPending = cmp.Or(o.MaxPending, 8<<20)
	o.Step = cmp.Or(o.Step, 4<<20)
	o.Size = cmp.Or(o.Size, 64<<20)
	o.Spares = max(cmp.Or(o.Spares, 2), 0)
	return o
}

func (o Options) check() error {
	switch o.Mode {
	case SyncAlways, SyncInterval, SyncOS:
	default:
		return fmt.Errorf("log mode %q: want %q, %q or %q", o.Mode, SyncAlways, SyncInterval, SyncOS)
	}
	if o.Interval < 0 || o.MinGap < 0 || o.MaxPending < 0 || o.Step < 0 || o.Size < 0 {
		return errors.New("log options: negative value")
	}
	return nil
}
