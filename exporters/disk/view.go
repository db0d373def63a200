package disk

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// view is a snapshot of everything that is stored.
type view struct {
	store    *exporter
	sources  []source.Source
	lives    []*live
	segments []*handle
}

// view acquires all memtables and segments. Later spans are not visible; segments that expire stay
// readable.
func (e *exporter) view() scan.View {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := &view{store: e, lives: append([]*live(nil), e.frozen...), segments: append([]*handle(nil), e.segments...)}
	if e.active != nil {
		v.lives = append(v.lives, e.active)
	}
	for _, l := range v.lives {
		l.refs++
		v.sources = append(v.sources, e.sourceOfLive(l))
	}
	for _, h := range v.segments {
		h.refs++
		v.sources = append(v.sources, e.sourceOf(h))
	}
	return v
}

// Sources implements scan.View.
func (v *view) Sources() []source.Source { return v.sources }

// Release implements scan.View.
func (v *view) Release() {
	for _, l := range v.lives {
		v.store.releaseLive(l)
	}
	for _, h := range v.segments {
		v.store.releaseHandle(h)
	}
}
