package disk

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
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
	// operations. It limits the total size of their names in all inputs, in bytes. With many
	// different names, a name takes about 10 bytes in an input and 500 in a merge.
	maxMergeNames = 4 << 20
	// retentionShare limits a merged segment to this fraction (1/n) of the retention, by size and
	// by time: the last span of a segment delays the deletion of the first one, and a merge needs
	// the space of its inputs a second time.
	retentionShare = 8
	// maxMergeBackoff is the maximum wait between failing merges. Each may have written a lot of
	// data before it failed.
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
	urgent   bool            // more than urgentBacklog segments wait: do not wait for flushes either

	// Guarded by segments.mu.
	inputExpired bool
	committing   bool // the output is about to replace the inputs: no input may expire
}

// merger merges segments in the background.
type merger struct {
	*common
	intake    *intake
	segments  *segments
	deletions *deletions
	retention *retention
	running   atomic.Bool // a merge has inputs
}

// run merges segments when they are due, until Stop.
func (g *merger) run() {
	var load load
	retry, failing := backoff{max: maxMergeBackoff}, false
	pace := func(m *merge) func() error {
		return (&pacer{merger: g, merge: m, load: &load, since: time.Now()}).step
	}
	g.every(tick, func() {
		load.busy(g.intake)
		for more := true; more && retry.due(); {
			var err error
			more, err = g.mergeNext(pace)
			if failed := err != nil && !aborted(err); failed || more {
				g.noteOutcome(err, failed, &failing)
				retry.note(err)
			}
		}
	})
}

// noteOutcome logs the first failure, and the first success after it.
func (g *merger) noteOutcome(err error, failed bool, failing *bool) {
	switch {
	case failed:
		g.metrics.mergeFailures.Inc()
		if !*failing {
			g.log.Warn("merge failed; no spans are lost; will retry with increasing delays", zap.Error(err))
		}
	case err != nil:
		g.metrics.mergeAborts.Inc()
		return
	case *failing:
		g.log.Info("merging of segments recovered")
	}
	*failing = failed
}

// mergeNext runs the next merge, if one is due, and reports whether it did. pace creates
// segment.MergeOptions.Pace. While one merge is running, none is due.
func (g *merger) mergeNext(pace func(*merge) func() error) (bool, error) {
	free, err := g.dir.Free()
	if err != nil {
		return false, fmt.Errorf("measuring free disk space: %w", err)
	}
	m := g.beginMerge(free)
	if m == nil {
		return false, nil
	}
	began := time.Now()
	info, err := g.writeMerged(m, pace(m))
	g.endMerge(m)
	if err != nil {
		return true, fmt.Errorf("merging %d segments into %s: %w", len(m.inputs), m.name, err)
	}
	g.metrics.merged(info, time.Since(began))
	g.log.Debug("merged segments", zap.Stringer("segment", m.name), zap.Int("segments", len(m.inputs)), zap.Int("spans", info.Rows),
		zap.Int64("bytes", info.Size), zap.Int64("bytes_before", sizeOf(m.inputs)), zap.Int("duplicates", info.Duplicates),
		zap.Duration("took", time.Since(began)))
	return true, nil
}

// beginMerge selects what to merge, acquires the inputs and reserves space; free is the free space
// of the disk. It returns nil if nothing is due or space is missing. In the latter case the
// reservation stays, and the maintenance loop deletes the oldest segments as if the space were in
// use.
func (g *merger) beginMerge(free int64) *merge {
	g.intake.mu.Lock()
	defer g.intake.mu.Unlock()
	g.segments.mu.Lock()
	defer g.segments.mu.Unlock()
	if g.running.Load() {
		return nil
	}
	g.retention.claim(0, false)
	if g.intake.closed || g.intake.full != nil || g.intake.stuck != nil {
		return nil
	}
	s := g.retention.spaceFor(free)
	inputs := g.mergeRules(s).pick(g.segments.list)
	if inputs == nil {
		inputs = g.pickRewrite(s)
	}
	if inputs == nil || g.segments.withdrawn(inputs) {
		return nil
	}
	size, waiting := sizeOf(inputs), backlog(g.segments.list)
	fits := s.has(size)
	g.retention.claim(size, !fits)
	if !fits {
		return nil
	}
	m := &merge{inputs: slices.Clone(inputs), hurry: waiting > maxBacklog, urgent: waiting > urgentBacklog}
	g.acquire(m)
	return m
}

// acquire prepares a merge of its inputs. The caller holds segments.mu.
func (g *merger) acquire(m *merge) {
	var applied uint64
	m.sources, applied = g.deletions.visibleIn(m.inputs)
	m.describe(g.segments.replacedBy(m.inputs), applied)
	for i, h := range m.inputs {
		h.refs++
		h.merge = m
		m.filtered = m.filtered || m.sources[i] != source.Source(h.segment)
	}
	g.running.Store(true)
}

// mergeRules returns the current rules. The caller holds intake.mu and segments.mu.
func (g *merger) mergeRules(s space) *mergeRules {
	c := &g.config
	r := &mergeRules{minSegments: min(c.Merge.MinSegments, c.Merge.MaxSegments), maxSegments: c.Merge.MaxSegments, rows: c.Merge.MaxSpans,
		traces: c.mergeTraces(), nameBytes: maxMergeNames,
		bytes: int64(c.Retention.Size) / retentionShare, arrivals: time.Duration(c.Retention.Time) / retentionShare, fits: s.fits}
	// A memtable belongs to the day of its last span, but may be flushed some time later.
	r.today = directory.NewSegment(g.env.Now().Add(-time.Duration(c.Memtable.MaxAge)), 0, 0, 0).Day
	for _, l := range g.intake.memtables() {
		r.unflushed = append(r.unflushed, l.epoch)
	}
	for _, l := range g.segments.leftover {
		r.unflushed = append(r.unflushed, l.epoch)
	}
	return r
}

// pickRewrite returns a segment to rewrite without its deleted spans, or nil. The caller
// holds segments.mu.
func (g *merger) pickRewrite(s space) []*handle {
	older := int64(0)
	for i, h := range g.segments.list {
		if !h.unmergeable && g.deletions.needsRewrite(h) && s.fits(h.info.Size, older) && !g.segments.pinned(h) {
			return g.segments.list[i : i+1]
		}
		older += h.info.Size
	}
	return nil
}

// describe sets name and metadata of the output.
func (m *merge) describe(replaces []string, lastTombstone uint64) {
	first, last := m.inputs[0], m.inputs[len(m.inputs)-1]
	arrivals := totalOf(m.inputs)
	level := 0
	for _, h := range m.inputs {
		level = max(level, h.name.Level)
	}
	m.name = directory.Segment{Day: first.name.Day, Level: level + 1, First: first.name.First, Last: last.name.Last}
	m.meta = segment.Meta{
		Level: m.name.Level, FirstEpoch: m.name.First, LastEpoch: m.name.Last, FirstArrival: arrivals.first, LastArrival: arrivals.last,
		Replaces: replaces, LastTombstone: lastTombstone,
	}
}

// writeMerged writes the output and replaces the inputs with it. After an error, the store is
// unchanged.
func (g *merger) writeMerged(m *merge, pace func() error) (segment.Info, error) {
	info, err := segment.Merge(g.dir.FS(), g.dir.StagingPath(m.name), m.sources, m.meta, segment.MergeOptions{Pace: pace})
	switch {
	case err != nil:
		g.markUnmergeable(m, err)
	case !m.filtered && info.Rows+info.Duplicates != totalOf(m.inputs).rows:
		err = fmt.Errorf("BUG: merge of %d spans wrote %d and dropped %d duplicates", totalOf(m.inputs).rows, info.Rows, info.Duplicates)
	default:
		err = g.swap(m)
	}
	if err != nil {
		if err := g.dir.Discard(m.name); err != nil {
			g.log.Warn("cannot remove output of failed merge", zap.Error(err))
		}
	}
	return info, err
}

// swap publishes the output under its name and replaces the inputs with it.
func (g *merger) swap(m *merge) error {
	s := g.segments
	s.mu.Lock()
	m.committing = !m.inputExpired
	s.mu.Unlock()
	if !m.committing {
		return errInputExpired
	}
	err := g.dir.Publish(m.name)
	var output *handle
	if err == nil {
		output, err = s.open(m.name)
	}
	if err != nil {
		s.withdraw(m)
		return err
	}
	g.dir.Enlist(m.name, output.info.Rows, namesOf(m.inputs)...)
	s.mu.Lock()
	rest := slices.DeleteFunc(slices.Clone(s.list), func(h *handle) bool { return slices.Contains(m.inputs, h) })
	s.list = insert(rest, output)
	for _, h := range m.inputs {
		s.doom(h)
	}
	g.retention.claim(0, false)
	s.mu.Unlock()
	for _, h := range m.inputs {
		s.release(h)
	}
	return nil
}

func namesOf(segments []*handle) (names []directory.Segment) {
	for _, h := range segments {
		names = append(names, h.name)
	}
	return names
}

// endMerge releases the inputs. Their files are deleted if the merge succeeded and no query reads
// them.
func (g *merger) endMerge(m *merge) {
	g.segments.mu.Lock()
	for _, h := range m.inputs {
		h.merge = nil
	}
	g.retention.claim(0, false)
	g.segments.mu.Unlock()
	g.running.Store(false)
	for _, h := range m.inputs {
		g.segments.release(h)
	}
}

// markUnmergeable excludes segments from merges that would always fail: a damaged segment, or a
// whole run that exceeds the limits of one segment. Damaged files are not repaired automatically.
// After a restart, merges of these segments are retried.
func (g *merger) markUnmergeable(m *merge, err error) {
	var damage *source.DamageError
	damaged := errors.As(err, &damage)
	if !damaged && !errors.Is(err, segment.ErrTooLarge) {
		return
	}
	causes := slices.DeleteFunc(slices.Clone(m.inputs), func(h *handle) bool { return damaged && g.dir.Path(h.name) != damage.File })
	if len(causes) == 0 {
		causes = m.inputs
	}
	g.segments.mu.Lock()
	defer g.segments.mu.Unlock()
	for _, h := range causes {
		h.unmergeable = true
		g.metrics.unmergeable.Inc()
		g.log.Error("segment excluded from merges", zap.Stringer("segment", h.name), zap.Error(err))
	}
}
