package memory

import (
	"context"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Usage implements tracestore.UsageReporter.
func (e *exporter) Usage(context.Context, string) (tracestore.Usage, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	u := tracestore.Usage{Bytes: e.usage.bytes, MaxBytes: e.maxBytes}
	if e.oldest != nil {
		u.Oldest = time.Unix(0, e.oldest.created)
	}
	return u, nil
}
