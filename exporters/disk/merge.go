package disk

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

const (
	// maxMergeTraces bounds the memory of a merge, which is by trace.
	maxMergeTraces = 1_000_000
	// retentionShare is how much of what retention allows, by size and by time, one merged segment may be: the last span of a segment keeps
	// the first one, and a merge needs the space of its segments once more.
	retentionShare = 8
	// maxMergeBackoff is the longest wait between merges that fail. Each may have written much before it did.
	maxMergeBackoff = 5 * time.Minute
)

// merge makes one segment of several, or a new one of one that has spans which were deleted.
//
//	inputs ──▶ <name>.seg.tmp, synced ──▶ <name>.seg, synced ──▶ output takes the place of the inputs ──▶ inputs' files go
//	             │ an input expires         │ no input expires     in memory, in one step                  the output does not
//	             ▼                          ▼ any more                                                     expire before
//	           given up                   a crash from here on: the next start finds the output and deletes the inputs
type merge struct {
	inputs  []*handle
	name    directory.Segment
	meta    segment.Meta
	sources []source.Source // of the inputs
	masked  bool            // some of the sources show less than their segment has
	hurry   bool            // many segments wait: it does not rest
	urgent  bool            // too many do: it does not wait for flushes, either

	// Guarded by exporter.mu.
	lost       bool // an input expired
	committing bool // no input may expire: the output is about to take their place
}

// mergeAlways merges segments as they become due, until Stop.
func (e *exporter) mergeAlways() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var load load
	retry, trouble := backoff{most: maxMergeBackoff}, false
	pace := func(m *merge) func() error {
		return (&pacer{store: e, merge: m, load: &load, since: time.Now()}).step
	}
	for {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
		}
		e.mu.Lock()
		load.busy(e.active)
		e.mu.Unlock()
		for more := true; more && retry.due(); {
			var err error
			more, err = e.mergeNext(pace)
			if failed := err != nil && !aborted(err); failed || more {
				e.noteMerge(err, failed, &trouble)
				retry.note(err)
			}
		}
	}
}

// noteMerge tells of a failure when it is the first one, and of the success after it.
func (e *exporter) noteMerge(err error, failed bool, trouble *bool) {
	switch {
	case failed:
		e.metrics.mergeFailures.Inc()
		if !*trouble {
			e.log.Warn("merging segments failed; nothing is lost, and it will be tried again, less and less often", zap.Error(err))
		}
	case err != nil:
		e.metrics.mergeAborts.Inc()
		return
	case *trouble:
		e.log.Info("merging segments works again")
	}
	*trouble = failed
}

// mergeNext merges what is due and reports whether there was something. pace makes segment.MergeOptions.Pace. While one merge is under
// way there is nothing due.
func (e *exporter) mergeNext(pace func(*merge) func() error) (bool, error) {
	free, err := e.dir.Free()
	if err != nil {
		return false, fmt.Errorf("measuring the free space of the disk: %w", err)
	}
	m := e.beginMerge(free)
	if m == nil {
		return false, nil
	}
	began := time.Now()
	info, err := e.writeMerged(m, pace(m))
	e.endMerge(m)
	if err != nil {
		return true, fmt.Errorf("merging %d segments into %s: %w", len(m.inputs), m.name, err)
	}
	e.metrics.merged(info, time.Since(began))
	e.log.Debug("segments merged", zap.Stringer("segment", m.name), zap.Int("segments", len(m.inputs)), zap.Int("spans", info.Rows),
		zap.Int64("bytes", info.Size), zap.Int64("bytes_before", sizeOf(m.inputs)), zap.Int("duplicates", info.Duplicates),
		zap.Duration("took", time.Since(began)))
	return true, nil
}

// beginMerge decides what to merge, takes hold of it and claims the space; free is that of the disk. It returns nil where there is nothing to
// do, or not enough space yet: then the claim stands, and makes the keeper delete the oldest segments as if it were used already.
func (e *exporter) beginMerge(free int64) *merge {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.merging != nil {
		return nil
	}
	e.claimed = 0
	if e.closed || e.full != nil || e.stuck != nil {
		return nil
	}
	s := e.spaceFor(free)
	inputs := e.rules(s).pick(e.segments)
	if inputs == nil {
		inputs = e.pickRewrite(s)
	}
	if inputs == nil {
		return nil
	}
	if e.withdrawn(inputs) {
		return nil
	}
	waiting := backlog(e.segments)
	m := &merge{inputs: slices.Clone(inputs), hurry: waiting > maxBacklog, urgent: waiting > urgentBacklog}
	e.describe(m)
	e.claimed = sizeOf(inputs)
	if !s.has(e.claimed) {
		return nil
	}
	for _, h := range m.inputs {
		h.refs++
		s := e.sourceOf(h)
		m.sources, m.masked = append(m.sources, s), m.masked || s != source.Source(h.segment)
	}
	e.merging = m
	return m
}

// rules returns the rules of the moment. The caller holds mu.
func (e *exporter) rules(s space) *rules {
	c := &e.config
	r := &rules{least: c.Merge.MinSegments, most: c.Merge.MaxSegments, rows: c.Merge.MaxSpans, traces: maxMergeTraces,
		bytes: int64(c.Retention.Size) / retentionShare, arrivals: time.Duration(c.Retention.Time) / retentionShare, fits: s.fits}
	// A memtable belongs to the day of its last span, and may be written a while later.
	r.over = directory.NewSegment(e.env.Now().Add(-time.Duration(c.Memtable.MaxAge)), 0, 0, 0).Day
	for _, l := range e.frozen {
		r.unflushed = append(r.unflushed, l.epoch)
	}
	if e.active != nil {
		r.unflushed = append(r.unflushed, e.active.epoch)
	}
	for _, l := range e.leftover {
		r.unflushed = append(r.unflushed, l.epoch)
	}
	return r
}

// pickRewrite returns a segment that is to be written again without what was deleted, or nil. The caller holds mu.
func (e *exporter) pickRewrite(s space) []*handle {
	older := int64(0)
	for i, h := range e.segments {
		if !h.spoiled && e.wantsRewrite(h) && s.fits(h.info.Size, older) && !e.bound(h) {
			return e.segments[i : i+1]
		}
		older += h.info.Size
	}
	return nil
}

// describe says what the output is. The caller holds mu.
func (e *exporter) describe(m *merge) {
	first, last := m.inputs[0], m.inputs[len(m.inputs)-1]
	arrivals := totalOf(m.inputs)
	level := 0
	for _, h := range m.inputs {
		level = max(level, h.name.Level)
	}
	m.name = directory.Segment{Day: first.name.Day, Level: level + 1, First: first.name.First, Last: last.name.Last}
	m.meta = segment.Meta{
		Level: m.name.Level, FirstEpoch: m.name.First, LastEpoch: m.name.Last, FirstArrival: arrivals.first, LastArrival: arrivals.last,
		Replaces: e.replacedBy(m.inputs), LastTombstone: e.deletionsApplied(m.inputs),
	}
}

// replacedBy names all files that may still be there, or come back with a power cut, and whose spans a segment made of the inputs has: the
// inputs, and what they were made of. Of the latter, those of level 0 are always named, because that is how logs are known to be done with, and
// the others as long as their files are there. The caller holds mu.
func (e *exporter) replacedBy(inputs []*handle) []string {
	var names []string
	for _, h := range inputs {
		names = append(names, h.name.String())
		for _, text := range h.info.Replaces {
			name, ok := directory.Parse(text)
			if ok && name.Level == 0 || slices.ContainsFunc(e.doomed, func(d *handle) bool { return d.name.String() == text }) {
				names = append(names, text)
			}
		}
	}
	return names
}

// writeMerged makes the output and puts it in the place of the inputs. After an error all is as before.
func (e *exporter) writeMerged(m *merge, pace func() error) (segment.Info, error) {
	info, err := segment.Merge(e.env.FS, e.dir.Stage(m.name), m.sources, m.meta, segment.MergeOptions{Pace: pace})
	switch {
	case err != nil:
		e.spoil(m, err)
	case !m.masked && info.Rows+info.Duplicates != totalOf(m.inputs).rows:
		err = fmt.Errorf("BUG: of %d spans %d are left and %d were duplicates", totalOf(m.inputs).rows, info.Rows, info.Duplicates)
	default:
		err = e.swap(m)
	}
	if err != nil {
		if err := e.dir.Discard(m.name); err != nil {
			e.log.Warn("tidying up after a merge", zap.Error(err))
		}
	}
	return info, err
}

// swap gives the output its name and lets it take the place of the inputs.
func (e *exporter) swap(m *merge) error {
	e.mu.Lock()
	m.committing = !m.lost
	e.mu.Unlock()
	if !m.committing {
		return errInputGone
	}
	err := e.dir.Publish(m.name)
	var output *handle
	if err == nil {
		output, err = e.open(m.name)
	}
	if err != nil {
		e.withdraw(m)
		return err
	}
	e.mu.Lock()
	rest := slices.DeleteFunc(slices.Clone(e.segments), func(h *handle) bool { return slices.Contains(m.inputs, h) })
	e.segments = insert(rest, output)
	for _, h := range m.inputs {
		e.doom(h)
	}
	e.merging, e.claimed = nil, 0
	e.mu.Unlock()
	for _, h := range m.inputs {
		e.releaseHandle(h)
	}
	return nil
}

// withdraw deletes an output that may have its name already. As long as it is there, no input expires.
func (e *exporter) withdraw(m *merge) {
	d := &handle{name: m.name, info: segment.Info{Meta: m.meta}, expired: true, burying: true}
	e.mu.Lock()
	e.doomed = append(e.doomed, d)
	e.mu.Unlock()
	e.bury(d)
}

// withdrawn reports whether the file of an attempt that failed, and was of some of these inputs, is still to be deleted. Another output would
// not name it, and after a crash both would be there. The caller holds mu.
func (e *exporter) withdrawn(inputs []*handle) bool {
	return slices.ContainsFunc(e.doomed, func(d *handle) bool { return slices.ContainsFunc(inputs, d.replaces) })
}

// endMerge gives the inputs free, which is the end of their files if the merge succeeded and no query reads them.
func (e *exporter) endMerge(m *merge) {
	e.mu.Lock()
	if e.merging == m {
		e.merging, e.claimed = nil, 0
	}
	e.mu.Unlock()
	for _, h := range m.inputs {
		e.releaseHandle(h)
	}
}

// spoil leaves segments out of merges from now on, with which every merge would fail: one that is damaged, or all of a run that is too much for
// one segment. Nothing is repaired behind the owner's back; after a restart they are looked at again.
func (e *exporter) spoil(m *merge, err error) {
	var damage *source.DamageError
	damaged := errors.As(err, &damage)
	if !damaged && !errors.Is(err, segment.ErrTooLarge) {
		return
	}
	guilty := slices.DeleteFunc(slices.Clone(m.inputs), func(h *handle) bool { return damaged && e.dir.Path(h.name) != damage.File })
	if len(guilty) == 0 {
		guilty = m.inputs
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range guilty {
		h.spoiled = true
		e.metrics.spoiled.Inc()
		e.log.Error("a segment is left out of merges", zap.Stringer("segment", h.name), zap.Error(err))
	}
}
