package disk

import (
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// view is a snapshot of all stored spans.
type view struct {
	stored   *deletions
	sources  []source.Source
	lives    []*live
	segments []*handle
}

// view acquires all memtables and segments, without deleted spans. Later spans are not visible;
// segments that expire stay readable.
func (d *deletions) view() scan.View {
	d.intake.mu.Lock()
	defer d.intake.mu.Unlock()
	d.segments.mu.Lock()
	defer d.segments.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	v := &view{stored: d, lives: slices.Clone(d.intake.memtables()), segments: d.segments.list}
	for _, l := range v.lives {
		l.refs++
		v.sources = append(v.sources, d.sourceOfLive(l))
	}
	for _, h := range v.segments {
		h.refs++
		v.sources = append(v.sources, d.sourceOf(h))
	}
	return v
}

// Sources implements scan.View.
func (v *view) Sources() []source.Source { return v.sources }

// Release implements scan.View.
func (v *view) Release() {
	for _, l := range v.lives {
		v.stored.intake.release(l)
	}
	for _, h := range v.segments {
		v.stored.segments.release(h)
	}
}
