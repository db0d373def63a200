package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/pipeline"
)

// Bounds of the deletions that files still need. Above them, Delete asks its callers to come again when merging has made room.
const (
	maxMarks      = 10_000
	maxMarkTraces = 500_000 // of all marks; in memory each takes about 50 bytes
)

// deletionDir is the folder of the marks.
const deletionDir = "deletions"

// deletions are the marks in force.
type deletions struct {
	files tombstone.Dir
	turn  chan struct{}   // holds a token while there is a Delete or a tidying
	given uint64          // the last number that was given; guarded by turn
	doubt *tombstone.Rule // in force, but its mark may be there or not; guarded by turn

	// Guarded by exporter.mu.
	rules []*tombstone.Rule // by number; a list is never changed, but replaced or added to
	last  uint64            // number of the last mark that is in force
}

// hiding is the mask of a memtable or a segment. Guarded by exporter.mu.
type hiding struct {
	upTo   uint64            // marks up to this number were considered
	mask   *tombstone.Filter // nil: nothing is hidden
	before *tombstone.Filter // what mask goes back to if it turns out that its new rules hide nothing
}

// over returns what of a source is not deleted: the source itself where nothing of it is. The same as long as no deletion hits it. The caller
// holds mu.
func (d *deletions) over(h *hiding, src source.Source, firstEpoch, heeded uint64) source.Source {
	if h.mask != nil && h.mask != h.before {
		h.settle()
	}
	if h.upTo < d.last {
		var fresh []*tombstone.Rule
		for _, r := range d.rules[d.behind(max(h.upTo, heeded)):] {
			if r.Applies(firstEpoch, heeded) && r.Overlaps(src) {
				fresh = append(fresh, r)
			}
		}
		if len(fresh) > 0 {
			h.mask = tombstone.NewFilter(src, fresh, h.mask)
		}
		h.upTo = d.last
	}
	if h.mask == nil {
		return src
	}
	return h.mask
}

// settle makes the mask the one to go back to if it hides something new, and goes back if it does not.
func (h *hiding) settle() {
	if h.mask.Redundant() {
		h.mask = h.before
	} else if _, known := h.mask.Hidden(); known {
		h.before = h.mask
	}
}

// behind returns the index of the first rule with a number above the given one.
func (d *deletions) behind(number uint64) int {
	i, _ := slices.BinarySearchFunc(d.rules, number+1, func(r *tombstone.Rule, n uint64) int { return cmp.Compare(r.Number, n) })
	return i
}

var errTooManyDeletions = errors.New("many deletions wait for the merging of segments; name several traces in one deletion, or come again later")

// makeRoom fails where there are too many marks for another one. The caller holds turn.
func (d *deletions) makeRoom(e *exporter, r *tombstone.Rule) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	traces := len(r.Traces)
	for _, o := range d.rules {
		traces += len(o.Traces)
	}
	if len(d.rules) >= maxMarks || traces > maxMarkTraces {
		return pipeline.Overloaded(errTooManyDeletions, time.Minute)
	}
	return nil
}

// add gives a rule its number, makes its mark durable and puts it in force; so it does after an error where the mark may be there all the
// same: else files that are merged from now on would not have heeded it, and it would hide later spans in them after a restart. No other one
// is added before that doubt is settled: what both cover would be taken for what the first one hides. The caller holds turn and intake.
func (d *deletions) add(e *exporter, r *tombstone.Rule, through uint64) error {
	if d.doubt != nil {
		if err := d.files.Write(d.doubt.Tombstone); err != nil {
			return fmt.Errorf("the deletion before this one: %w", err)
		}
		d.doubt = nil
	}
	d.given++
	r.Number, r.Through = d.given, through
	err := d.files.Write(r.Tombstone)
	switch {
	case errors.Is(err, tombstone.ErrInDoubt):
		d.doubt = r
	case err != nil:
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	d.rules = append(d.rules, r)
	d.last = r.Number
	return err
}

// loadDeletions reads the marks. It is called before anything else is recovered: no new epoch may be one that a mark covers.
func (e *exporter) loadDeletions() error {
	d := &e.deletions
	d.files = tombstone.Dir{FS: e.env.FS, Path: path.Join(e.path, deletionDir)}
	marks, damaged, err := d.files.Load()
	if err != nil {
		return err
	}
	for _, f := range damaged {
		d.given = max(d.given, f.Number)
		to, err := e.dir.Quarantine(f.Path)
		if err != nil {
			return err
		}
		e.metrics.lostDeletions.Inc()
		e.log.Error("a deletion cannot be read and was set aside; spans that it hid are visible again: repeat the deletion",
			zap.String("file", to), zap.Error(f.Err))
	}
	for _, m := range marks {
		d.rules = append(d.rules, tombstone.NewRule(m))
		d.given, d.last = max(d.given, m.Number), m.Number
		e.lastEpoch = max(e.lastEpoch, m.Through)
	}
	return nil
}

// noteHeeded sees to it that no number is given again that a segment says it has heeded.
func (e *exporter) noteHeeded() {
	for _, h := range e.segments {
		e.deletions.given = max(e.deletions.given, h.info.LastTombstone)
	}
}

// tidyEvery is how often marks are looked after.
const tidyEvery = tick

// tidyDeletions runs until Stop. It finds out what masks hide, so that queries need not, and removes marks that nothing needs.
func (e *exporter) tidyDeletions() {
	ticker := time.NewTicker(tidyEvery)
	defer ticker.Stop()
	ctx := untilStop{context.Background(), e.stop}
	for {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
			if err := e.tidy(ctx); err != nil && ctx.Err() == nil {
				e.log.Warn("looking after deletions", zap.Error(err))
			}
		}
	}
}

// untilStop is a context that ends with the store.
type untilStop struct {
	context.Context
	stop <-chan struct{}
}

func (u untilStop) Done() <-chan struct{} { return u.stop }

func (u untilStop) Err() error {
	select {
	case <-u.stop:
		return context.Canceled
	default:
		return nil
	}
}

func (e *exporter) tidy(ctx context.Context) error {
	d := &e.deletions
	e.mu.Lock()
	idle := len(d.rules) == 0
	e.mu.Unlock()
	if idle {
		return nil
	}
	if _, _, err := e.countHidden(ctx, 0); err != nil {
		return err
	}
	e.dropEmptied()
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	default:
		return nil // a Delete is under way
	}
	return e.removeMarks()
}

// dropEmptied drops segments without a span that is not deleted.
func (e *exporter) dropEmptied() {
	for _, h := range e.loose() {
		e.mu.Lock()
		m, ok := e.sourceOf(h).(*tombstone.Filter)
		e.mu.Unlock()
		if !ok {
			continue
		}
		if n, known := m.Hidden(); known && n == h.info.Rows {
			e.drop(h, expiredEmpty)
		}
	}
}

// removeMarks removes the marks that no file needs any more. The last one stays, so that its number is not given again: segments that heeded
// it say so by its number.
func (e *exporter) removeMarks() error {
	unneeded := e.unneededMarks(e.deletions.given)
	if len(unneeded) == 0 {
		return nil
	}
	oldest, err := e.oldestStray()
	if err != nil {
		return err
	}
	for _, r := range unneeded {
		if oldest <= r.Through {
			continue // a file that the store does not read may need it, should it come back
		}
		if err := e.deletions.files.Remove(r.Number); err != nil {
			return err
		}
		e.mu.Lock()
		e.deletions.rules = slices.DeleteFunc(slices.Clone(e.deletions.rules), func(o *tombstone.Rule) bool { return o == r })
		e.mu.Unlock()
		e.log.Info("a deletion is completed: no file holds its spans any more", zap.Uint64("deletion", r.Number))
	}
	return nil
}

// unneededMarks returns the rules but for the last one that hide nothing of what the store reads.
func (e *exporter) unneededMarks(last uint64) []*tombstone.Rule {
	e.mu.Lock()
	defer e.mu.Unlock()
	needed := map[*tombstone.Rule]bool{}
	note := func(s source.Source) {
		if m, ok := s.(*tombstone.Filter); ok {
			for _, r := range m.Rules() {
				needed[r] = true
			}
		}
	}
	for _, l := range e.frozen {
		note(e.sourceOfLive(l))
	}
	for _, h := range e.segments {
		note(e.sourceOf(h))
	}
	return slices.DeleteFunc(slices.Clone(e.deletions.rules), func(r *tombstone.Rule) bool { return needed[r] || r.Number == last })
}

// oldestStray returns the first epoch of which there are spans in files that no view reads: logs, segments that are to be deleted, also those
// that are deleted and may come back with a power cut, and segments in the quarantine, from which an operator may bring them back. It is the
// greatest number where there are none.
func (e *exporter) oldestStray() (uint64, error) {
	oldest := ^uint64(0)
	epochs, err := e.logs.Epochs()
	if err != nil {
		return 0, err
	}
	if len(epochs) > 0 {
		oldest = epochs[0]
	}
	e.mu.Lock()
	known := make(map[string]bool, len(e.segments))
	for _, h := range e.segments {
		known[h.name.String()] = true
	}
	for _, h := range e.doomed {
		oldest = min(oldest, h.name.First)
	}
	e.mu.Unlock()
	names, err := e.dir.Segments()
	if err != nil {
		return 0, err
	}
	for _, s := range names {
		if !known[s.String()] {
			oldest = min(oldest, s.First)
		}
	}
	set, err := e.dir.Quarantined()
	if err != nil {
		return 0, err
	}
	for _, f := range set {
		if s, ok := directory.Parse(path.Join(anyDay, f.Name)); ok {
			oldest = min(oldest, s.First)
		}
	}
	return oldest, nil
}

// anyDay completes the name of a segment in the quarantine, which does not say its day.
const anyDay = "20000101"
