package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Report is what recovery found in a log.
type Report struct {
	Records uint64 // delivered
	Bytes   int64  // in the payloads delivered
	Last    uint64 // sequence number of the last record delivered
	// Lost counts records that are missing although they had been synced: the disk lost them.
	Lost uint64
	// Unsynced counts missing records that had not been synced when the writer died, as far as
	// later records show. In mode SyncAlways none of them was committed.
	Unsynced uint64
	// Doubtful reports that a record counted in Unsynced may have been synced and committed: it is
	// unreadable, but not because its write was interrupted.
	Doubtful bool
	// Truncated reports that the end of the log is missing. Lost counts the records there as far as
	// they are known.
	Truncated bool
	// Weight is the weight of the log at its last checkpoint, see Dir.Checkpoint.
	Weight int64
	// Damage lists where lost records may have been, and what could not be read: at most the first
	// 1000 places of a file.
	Damage []Damage
}

// Sound reports whether nothing was lost and everything was readable. If not, the owner should keep
// the files, see Dir.Quarantine.
func (r Report) Sound() bool { return r.Lost == 0 && len(r.Damage) == 0 && !r.Truncated && !r.Doubtful }

// Damage is a range of a file that may have held lost records.
type Damage struct {
	File          string
	Offset, Bytes int64
	First, Last   uint64 // sequence numbers expected there; some may have been found elsewhere
	Err           error  // the last failed read; nil if everything was readable
}

// Replay calls deliver for every valid record of a log, in order. The payload is valid during the
// call. Damage in the files is reported, not an error. Errors come from deliver or from opening a
// file, wrap ErrVersion, or wrap fs.ErrNotExist if the log does not exist; records at the end may
// then be missing.
func (d *Dir) Replay(epoch uint64, deliver func(seq uint64, payload []byte) error) (Report, error) {
	r := &replay{deliver: deliver}
	d.mu.Lock()
	r.expected, r.inList = d.logs[epoch]
	d.mu.Unlock()
	r.inList = r.inList && d.opts.Mode != SyncOS // this mode does not sync the size of files
	defer r.close()
	err := r.open(d, epoch)
	if err == nil {
		err = r.run()
	}
	if err != nil {
		return r.report, fmt.Errorf("replay log %016x: %w", epoch, err)
	}
	r.checkEnd()
	r.classifyGaps()
	return r.report, nil
}

// replay merges the parts of one log by sequence number. A part starts with what was not known to
// be durable in the part before, and either may have lost some of it.
type replay struct {
	parts   []*scanner
	heads   []record // next record of each part; seq 0 at the end of the part
	deliver func(uint64, []byte) error
	gaps    []gap
	report  Report

	inList   bool // the list of logs has the log
	expected listed
}

// gap is a range of sequence numbers with `missing` numbers that were not found: all of them,
// unless there were too many gaps to keep separately.
type gap struct{ first, last, missing uint64 }

func (r *replay) open(d *Dir, epoch uint64) error {
	names, err := d.list()
	if err != nil {
		return err
	}
	files := names.of(epoch)
	if len(files) == 0 {
		return fs.ErrNotExist
	}
	if len(files) > maxParts {
		return fmt.Errorf("log has %d parts, limit %d", len(files), maxParts)
	}
	for _, p := range files {
		file, err := d.fs.Open(d.file(p.String()))
		if err != nil {
			return err
		}
		s, err := newScanner(file, epoch)
		s.fresh = r.inList && !r.expected.reused
		if err != nil {
			return errors.Join(err, file.Close())
		}
		r.parts = append(r.parts, s)
	}
	r.heads = make([]record, len(r.parts))
	return nil
}

func (r *replay) close() {
	for _, s := range r.parts {
		s.file.Close() // opened for reading: nothing to report
	}
}

func (r *replay) run() error {
	for i := range r.parts {
		if err := r.advance(i); err != nil {
			return err
		}
	}
	for {
		i := r.lowest()
		if i < 0 {
			return nil
		}
		if err := r.takeRecord(r.heads[i]); err != nil {
			return err
		}
		if err := r.advance(i); err != nil {
			return err
		}
	}
}

func (r *replay) advance(i int) (err error) {
	r.heads[i], _, err = r.parts[i].next()
	return err
}

// lowest returns the part with the lowest next record, or -1 if all are at their end.
func (r *replay) lowest() int {
	found := -1
	for i, h := range r.heads {
		if h.seq > 0 && (found < 0 || h.seq < r.heads[found].seq) {
			found = i
		}
	}
	return found
}

func (r *replay) takeRecord(rec record) error {
	if rec.seq <= r.report.Last {
		return nil // rewritten after a failed sync
	}
	r.missing(r.report.Last+1, rec.seq-1)
	r.report.Last = rec.seq
	r.report.Records++
	r.report.Bytes += int64(len(rec.payload))
	return r.deliver(rec.seq, rec.payload)
}

func (r *replay) missing(first, last uint64) {
	if first > last {
		return
	}
	if n := len(r.gaps); n == maxDamage {
		r.gaps[n-1].last = last
		r.gaps[n-1].missing += last - first + 1
		return
	}
	r.gaps = append(r.gaps, gap{first: first, last: last, missing: last - first + 1})
}

// checkEnd reports a log whose last file ends before the place where writing stopped. For logs that
// are not in the list, this is unknown.
func (r *replay) checkEnd() {
	if !r.inList {
		return
	}
	r.report.Weight = r.expected.weight
	last := 0 // the last part with records
	for i, s := range r.parts {
		if s.seen > 0 {
			last = i
		}
	}
	s := r.parts[last]
	if end := roundUp(s.last, groupUnit); end+groupUnit > s.size && !s.grew() {
		r.report.Truncated = true
		r.report.Damage = append(r.report.Damage, Damage{File: s.file.Name(), Offset: s.size, First: s.seen + 1, Last: endOfFile})
	}
}

// classifyGaps distinguishes lost records from those that were never synced.
func (r *replay) classifyGaps() {
	var durable, seen uint64
	if r.inList {
		durable, seen = r.expected.records, r.expected.records
	}
	for _, s := range r.parts {
		durable, seen = max(durable, s.durable), max(seen, s.seen)
	}
	r.missing(r.report.Last+1, seen)
	for _, g := range r.gaps {
		lost := uint64(0)
		if durable >= g.first {
			lost = min(g.missing, durable-g.first+1)
		}
		r.report.Lost += lost
		r.report.Unsynced += g.missing - lost
		doubted := func(s *scanner) bool { return s.doubted > durable && s.doubted >= g.first && s.doubted <= g.last }
		r.report.Doubtful = r.report.Doubtful || slices.ContainsFunc(r.parts, doubted)
	}
	r.gaps = slices.DeleteFunc(r.gaps, func(g gap) bool { return g.first > durable })
	r.collectDamage()
}

// collectDamage keeps the places that can have held a lost record. What followed the last record of
// a part is in the next part.
func (r *replay) collectDamage() {
	for i, s := range r.parts {
		for _, dmg := range s.damage {
			if i+1 < len(r.parts) && r.parts[i+1].first > 0 {
				dmg.Last = min(dmg.Last, r.parts[i+1].first-1)
			}
			lost := slices.ContainsFunc(r.gaps, func(g gap) bool { return g.first <= dmg.Last && g.last >= dmg.First })
			if lost || dmg.Err != nil {
				r.report.Damage = append(r.report.Damage, dmg)
			}
		}
	}
}
