package disk

import (
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/search"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

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
		v.sources = append(v.sources, e.sourceOfLive(l))
	}
	for _, h := range v.segments {
		h.refs++
		v.sources = append(v.sources, e.sourceOf(h))
	}
	return v
}

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

// damaged is told of every part of a file that a query could not read.
func (e *exporter) damaged(d *source.DamageError) {
	e.metrics.damage.Inc()
	e.log.Error("part of a segment cannot be read; queries that need it are answered without", zap.String("file", d.File),
		zap.String("part", d.Part), zap.Int("spans", d.Rows), zap.Error(d.Err))
}
