package memtable

import (
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// Recovery is what ReplayLog found in a log.
type Recovery struct {
	Report wal.Report
	// Unreadable is the number of rows that are damaged or refer to a lost definition.
	Unreadable int
	// Missing is the number of rows of lost records. For records at the end of the log it is known
	// only from Report.Weight.
	Missing int
	// Invalid is the first error about a record that is not what Append wrote, or nil.
	Invalid error
}

// Unacknowledged reports whether records are missing and none of them was synced. Rows that need
// their definitions were not acknowledged either.
func (r *Recovery) Unacknowledged() bool {
	return r.Report.Unsynced > 0 && r.Report.Sound() && r.Invalid == nil
}

// Damaged reports whether rows are lost.
func (r *Recovery) Damaged() bool {
	return r.Unreadable > 0 || r.Missing > 0 || r.Invalid != nil || !r.Report.Sound()
}

// Describe describes the losses of a damaged log. rows is the number of rows that were read.
func (r *Recovery) Describe(rows int) string {
	n, atLeast := r.Lost(rows)
	text := fmt.Sprintf("%d acknowledged spans are lost", n)
	switch {
	case atLeast && n == 0 && !r.Report.Truncated && len(r.Report.Damage) == 0:
		text = "acknowledged spans may be lost"
	case atLeast && n == 0:
		text = "an unknown number of acknowledged spans is lost"
	case atLeast:
		text = fmt.Sprintf("at least %d acknowledged spans are lost", n)
	}
	if r.Unreadable > 0 {
		text += fmt.Sprintf("; %d of them need definitions that were lost", r.Unreadable)
	}
	if r.Report.Truncated {
		text += "; the end of the log is missing"
	}
	return text
}

// Lost returns the number of rows that are lost. It is a lower bound if atLeast is set: the end of
// the log is missing or damaged.
func (r *Recovery) Lost(rows int) (n int, atLeast bool) {
	n = max(r.Unreadable+r.Missing, int(r.Report.Weight)-rows)
	atLeast = r.Report.Truncated || r.Report.Doubtful
	for _, d := range r.Report.Damage {
		atLeast = atLeast || d.Last > r.Report.Last
	}
	return n, atLeast
}

// ReplayLog rebuilds a table from a log. If the log is damaged, the table has all rows whose record
// and definitions are somewhere in the log. Errors come from wal.Dir.Replay; the table then has the
// rows that were read before.
func ReplayLog(log *wal.Dir, epoch uint64, newTable func() *Table) (*Table, Recovery, error) {
	t := newTable()
	r, err := t.replayLog(log, epoch)
	if r.Unreadable == 0 || err != nil {
		return t, r, err
	}
	// Definitions are lost. The log may repeat them, after the rows that need them.
	var definitions rows.Definitions
	_, err = log.Replay(epoch, func(_ uint64, record []byte) error {
		definitions.Add(record)
		return nil
	})
	if err != nil {
		return t, r, err
	}
	t.Release()
	t = newTable()
	invalid := t.replayDefinitions(&definitions)
	r, err = t.replayLog(log, epoch)
	r.Invalid = errors.Join(invalid, r.Invalid)
	return t, r, err
}

func (t *Table) replayLog(log *wal.Dir, epoch uint64) (r Recovery, err error) {
	r.Report, err = log.Replay(epoch, func(_ uint64, record []byte) error {
		lost, invalid := t.Replay(record)
		r.Unreadable += lost
		if r.Invalid == nil {
			r.Invalid = invalid
		}
		return nil
	})
	r.Missing = int(t.missingRows)
	return r, err
}

func (t *Table) replayDefinitions(d *rows.Definitions) (err error) {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for tag, payload := range d.All() {
		if failed := t.replayDefinition(tag, payload); failed != nil && err == nil {
			err = failed
		}
	}
	return err
}
