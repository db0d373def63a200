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
	// maxMergeTraces bounds the memory of a merge, which grows with the number of traces.
	maxMergeTraces = 1_000_000
	// maxMergeNames bounds the memory of a merge, which grows with the number of services and
	// operations. It is the size of their names in bytes, in all inputs; with many different ones a
	// name takes about ten bytes here and 500 in a merge.
	maxMergeNames = 4 << 20
	// retentionShare limits a merged segment to this fraction (1/n) of the retention, by size and
	// by time: the last span of a segment delays the deletion of the first one, and a merge needs
	// the space of its inputs a second time.
	retentionShare = 8
	// maxMergeBackoff is the maximum wait between failing merges. Each may have written much before
	// it failed.
	maxMergeBackoff = 5 * time.Minute
)

// merge turns several segments into one, or rewrites one segment without its deleted spans.
//
//	inputs ──▶ NAME.seg.tmp, synced ──▶ NAME.seg, synced ──▶ replace inputs ──▶ delete inputs
//	             │ an input expires       │ no input expires     in memory, in
//	             ▼                        │ from here on         one step
//	          aborted                     ▼
//	                                 after a crash, the next start finds the output and deletes
//	                                 the inputs
//
// The output does not expire before the inputs are deleted.
type merge struct {
	inputs   []*handle
	name     directory.Segment
	meta     segment.Meta
	sources  []source.Source // of the inputs
	filtered bool            // at least one source hides deleted spans
	hurry    bool            // more than maxBacklog segments wait: do not rest
	urgent   bool            // more than urgentBacklog wait: do not wait for flushes either

	// Guarded by exporter.mu.
	inputExpired bool
	committing   bool // the output is about to replace the inputs: no input may expire
}

// mergeLoop merges segments when they are due, until Stop.
func (e *exporter) mergeLoop() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var load load
	retry, failing := backoff{max: maxMergeBackoff}, false
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
				e.noteMerge(err, failed, &failing)
				retry.note(err)
			}
		}
	}
}

// noteMerge logs the first failure, and the first success after it.
func (e *exporter) noteMerge(err error, failed bool, failing *bool) {
	switch {
	case failed:
		e.metrics.mergeFailures.Inc()
		if !*failing {
			e.log.Warn("merge failed; no spans are lost; will retry with increasing delays", zap.Error(err))
		}
	case err != nil:
		e.metrics.mergeAborts.Inc()
		return
	case *failing:
		e.log.Info("merging of segments recovered")
	}
	*failing = failed
}

// mergeNext runs the merge that is due, if any, and reports whether there was one. pace creates
// segment.MergeOptions.Pace. While one merge is running, none is due.
func (e *exporter) mergeNext(pace func(*merge) func() error) (bool, error) {
	free, err := e.dir.Free()
	if err != nil {
		return false, fmt.Errorf("measuring free disk space: %w", err)
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
	e.log.Debug("merged segments", zap.Stringer("segment", m.name), zap.Int("segments", len(m.inputs)), zap.Int("spans", info.Rows),
		zap.Int64("bytes", info.Size), zap.Int64("bytes_before", sizeOf(m.inputs)), zap.Int("duplicates", info.Duplicates),
		zap.Duration("took", time.Since(began)))
	return true, nil
}

// beginMerge selects what to merge, acquires the inputs and reserves space; free is the free space
// of the disk. It returns nil if nothing is due or space is missing. In the latter case the
// reservation stays, and the maintenance loop deletes the oldest segments as if the space were in
// use.
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
	inputs := e.mergeRules(s).pick(e.segments)
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
		m.sources, m.filtered = append(m.sources, s), m.filtered || s != source.Source(h.segment)
	}
	e.merging = m
	return m
}

// mergeRules returns the current rules. The caller holds mu.
func (e *exporter) mergeRules(s space) *mergeRules {
	c := &e.config
	r := &mergeRules{minSegments: min(c.Merge.MinSegments, c.Merge.MaxSegments), maxSegments: c.Merge.MaxSegments, rows: c.Merge.MaxSpans,
		traces: c.mergeTraces(), nameBytes: maxMergeNames,
		bytes: int64(c.Retention.Size) / retentionShare, arrivals: time.Duration(c.Retention.Time) / retentionShare, fits: s.fits}
	// A memtable belongs to the day of its last span, and may be flushed a while later.
	r.today = directory.NewSegment(e.env.Now().Add(-time.Duration(c.Memtable.MaxAge)), 0, 0, 0).Day
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

// pickRewrite returns a segment to rewrite without its deleted spans, or nil. The caller holds mu.
func (e *exporter) pickRewrite(s space) []*handle {
	older := int64(0)
	for i, h := range e.segments {
		if !h.unmergeable && e.needsRewrite(h) && s.fits(h.info.Size, older) && !e.pinned(h) {
			return e.segments[i : i+1]
		}
		older += h.info.Size
	}
	return nil
}

// describe sets name and metadata of the output. The caller holds mu.
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

// replacedBy names all files whose spans a segment merged from the inputs holds and that may still
// exist, or reappear after a power failure: the inputs, and the files they were merged from. Of the
// latter, those of level 0 are always named, because this is how the store knows that a log is no
// longer needed; the others as long as their files exist. The caller holds mu.
func (e *exporter) replacedBy(inputs []*handle) []string {
	var names []string
	for _, h := range inputs {
		names = append(names, h.name.String())
		for _, text := range h.info.Replaces {
			name, ok := directory.ParseSegment(text)
			if ok && name.Level == 0 || slices.ContainsFunc(e.doomed, func(d *handle) bool { return d.name.String() == text }) {
				names = append(names, text)
			}
		}
	}
	return names
}

// writeMerged writes the output and replaces the inputs with it. After an error everything is as
// before.
func (e *exporter) writeMerged(m *merge, pace func() error) (segment.Info, error) {
	info, err := segment.Merge(e.dir.FS(), e.dir.StagingPath(m.name), m.sources, m.meta, segment.MergeOptions{Pace: pace})
	switch {
	case err != nil:
		e.markUnmergeable(m, err)
	case !m.filtered && info.Rows+info.Duplicates != totalOf(m.inputs).rows:
		err = fmt.Errorf("BUG: merge of %d spans wrote %d and dropped %d duplicates", totalOf(m.inputs).rows, info.Rows, info.Duplicates)
	default:
		err = e.swap(m)
	}
	if err != nil {
		if err := e.dir.Discard(m.name); err != nil {
			e.log.Warn("cannot remove output of failed merge", zap.Error(err))
		}
	}
	return info, err
}

// swap publishes the output under its name and replaces the inputs with it.
func (e *exporter) swap(m *merge) error {
	e.mu.Lock()
	m.committing = !m.inputExpired
	e.mu.Unlock()
	if !m.committing {
		return errInputExpired
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
	e.dir.Enlist(m.name, output.info.Rows, namesOf(m.inputs)...)
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

func namesOf(segments []*handle) (names []directory.Segment) {
	for _, h := range segments {
		names = append(names, h.name)
	}
	return names
}

// withdraw deletes an output that may already have its name. While the file exists, no input
// expires.
func (e *exporter) withdraw(m *merge) {
	d := &handle{name: m.name, info: segment.Info{Meta: m.meta}, expired: true, removing: true}
	e.mu.Lock()
	e.doomed = append(e.doomed, d)
	e.mu.Unlock()
	e.removeFile(d)
}

// withdrawn reports whether the output of a failed merge of some of these inputs is still to be
// deleted. Another output would not name it, and after a crash both would exist. The caller holds
// mu.
func (e *exporter) withdrawn(inputs []*handle) bool {
	return slices.ContainsFunc(e.doomed, func(d *handle) bool { return slices.ContainsFunc(inputs, d.replaces) })
}

// endMerge releases the inputs. Their files are deleted if the merge succeeded and no query reads
// them.
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

// markUnmergeable excludes segments from merges that would always fail: a damaged one, or a whole
// run that exceeds the limits of one segment. Damaged files are not repaired automatically. After a
// restart the segments are tried again.
func (e *exporter) markUnmergeable(m *merge, err error) {
	var damage *source.DamageError
	damaged := errors.As(err, &damage)
	if !damaged && !errors.Is(err, segment.ErrTooLarge) {
		return
	}
	causes := slices.DeleteFunc(slices.Clone(m.inputs), func(h *handle) bool { return damaged && e.dir.Path(h.name) != damage.File })
	if len(causes) == 0 {
		causes = m.inputs
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range causes {
		h.unmergeable = true
		e.metrics.unmergeable.Inc()
		e.log.Error("segment excluded from merges", zap.Stringer("segment", h.name), zap.Error(err))
	}
}
