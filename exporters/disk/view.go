package disk

import (
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/search"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// handle is an open segment. Its file goes when the store has given it up and nobody reads it any more.
type handle struct {
	name    directory.Segment
	info    segment.Info
	segment *segment.Segment
	refs    int  // the store's and those of views; guarded by exporter.mu
	expired bool // delete the file at the end; guarded by exporter.mu
}

// view is everything that is stored at one moment.
type view struct {
	store    *exporter
	sources  []source.Source
	lives    []*live
	segments []*handle
}

// view takes hold of all memtables and segments. What comes later is not seen, what expires meanwhile stays readable.
func (e *exporter) view() search.View {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := &view{store: e, lives: append([]*live(nil), e.frozen...), segments: append([]*handle(nil), e.segments...)}
	if e.active != nil {
		v.lives = append(v.lives, e.active)
	}
	for _, l := range v.lives {
		l.refs++
		v.sources = append(v.sources, l.table.Source())
	}
	for _, h := range v.segments {
		h.refs++
		v.sources = append(v.sources, e.sourceOf(h))
	}
	return v
}

// sourceOf returns the spans of a segment. The caller holds mu.
func (e *exporter) sourceOf(h *handle) source.Source { return h.segment }

// Sources implements search.View.
func (v *view) Sources() []source.Source { return v.sources }

// Release implements search.View.
func (v *view) Release() {
	for _, l := range v.lives {
		v.store.releaseLive(l)
	}
	for _, h := range v.segments {
		v.store.releaseHandle(h)
	}
}

func (e *exporter) releaseHandle(h *handle) {
	e.mu.Lock()
	h.refs--
	last, expired := h.refs == 0, h.expired
	e.mu.Unlock()
	if !last {
		return
	}
	if err := h.segment.Close(); err != nil {
		e.log.Warn("closing a segment", zap.Error(err))
	}
	if !expired {
		return
	}
	err := e.dir.Remove(h.name)
	e.mu.Lock()
	e.condemned -= h.info.Size
	e.mu.Unlock()
	if err != nil {
		e.log.Error("deleting an expired segment; it will be tried again at the next start", zap.Error(err))
	}
}

// damaged is told of every part of a file that a query could not read.
func (e *exporter) damaged(d *source.DamageError) {
	e.metrics.damage.Inc()
	e.log.Error("part of a segment cannot be read; queries that need it are answered without", zap.String("file", d.File),
		zap.String("part", d.Part), zap.Int("spans", d.Rows), zap.Error(d.Err))
}
