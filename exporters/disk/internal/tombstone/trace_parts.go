package tombstone

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

var _ source.TraceParts = (*Filter)(nil)

// TraceParts implements source.TraceParts. Parts include hidden rows, so their durations are
// maxima. If the inner source has no TraceParts, the result is nil.
func (f *Filter) TraceParts() (source.PartReader, error) {
	inner, ok := f.inner.(source.TraceParts)
	if !ok {
		return nil, nil
	}
	r, err := inner.TraceParts()
	if r == nil || err != nil {
		return nil, err
	}
	return &partReader{r}, nil
}

// partReader changes exact parts to maxima.
type partReader struct{ source.PartReader }

// Before implements source.PartReader.
func (r *partReader) Before(ctx context.Context, dst []source.TracePart, limit uint64) ([]source.TracePart, error) {
	from := len(dst)
	dst, err := r.PartReader.Before(ctx, dst, limit)
	for i := range dst[from:] {
		p := &dst[from+i]
		p.Root, p.Bounds = 0, min(p.Bounds, source.AtMost)
	}
	return dst, err
}
