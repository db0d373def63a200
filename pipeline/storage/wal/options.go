package wal

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Limits. Those of Options can be changed, these cannot.
const (
	// MaxPayload is the longest payload of a record, in bytes: a request of 64 MiB with what its owner adds to it.
	MaxPayload = 64<<20 + 64<<10
	// maxParts bounds the failures that one log outlives, and the files that its recovery has open at once.
	maxParts = 16
	// maxDamage bounds the places that a Report lists and the gaps that recovery keeps apart.
	maxDamage = 1000
	// maxUnreadable is the number of unreadable sectors after which recovery gives up the rest of a file.
	maxUnreadable = 256
)

// Errors that callers tell apart; all are wrapped.
var (
	// ErrFailed means that a log can take nothing more: a write or a sync failed and so did the attempt to go on in a new file. It
	// comes with the cause, for vfs.NoSpace. What was acknowledged before is safe. The owner starts a new log.
	ErrFailed = errors.New("log has failed")
	// ErrFull means that Options.MaxPending bytes wait to be written; nothing was appended. Commit makes room.
	ErrFull = errors.New("too many bytes wait to be written to the log")
	// ErrTooLarge means that a payload is longer than MaxPayload.
	ErrTooLarge = errors.New("record is too large for the log")
	// ErrClosed means that the log was closed.
	ErrClosed = errors.New("log is closed")
	// ErrVersion means that a log holds records of another version of the format.
	ErrVersion = errors.New("log was written by another version")
)

// Mode says what has happened to a record when Commit returns nil. In every mode it has been written: the death of the process loses
// nothing that was committed.
type Mode string

const (
	// SyncAlways: the record is synced. A power cut loses nothing that was committed.
	SyncAlways Mode = "always"
	// SyncInterval: the record is synced within Options.Interval. A power cut loses what was committed since.
	SyncInterval Mode = "interval"
	// SyncOS: the log never syncs; the operating system writes back when it likes.
	SyncOS Mode = "os"
)

// Options are those of all logs in a Dir. A zero field means its default.
type Options struct {
	// Mode is SyncAlways unless said otherwise.
	Mode Mode
	// Interval is the time between syncs in SyncInterval: 1 s.
	Interval time.Duration
	// MinGap is the least time between the end of a sync and the next group in SyncAlways, for disks with expensive syncs: none.
	MinGap time.Duration
	// MaxPending is how many bytes may wait to be written before Append refuses more: 8 MiB. One record may go beyond. Records that are written but not synced
	// are kept too, to be written again should the sync fail: as many bytes again, at which SyncInterval syncs ahead of time.
	MaxPending int
	// Step is the number of bytes by which files are zero-filled ahead of the write position: 4 MiB.
	Step int64
	// Size is the length at which zero-filling ends: 64 MiB. Logs may grow on; files longer than Size+Step do not become spares.
	Size int64
	// Spares is the greatest number of files that are kept for new logs: 2. Below zero means none.
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
		return errors.New("log options: below zero")
	}
	return nil
}
