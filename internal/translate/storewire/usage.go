package storewire

import (
	"time"

	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// PutUsage converts what a store holds.
func PutUsage(u tracestore.Usage) *store_v1.UsageResponse {
	return &store_v1.UsageResponse{Oldest: putTime(u.Oldest), Bytes: u.Bytes, MaxBytes: u.MaxBytes, Retention: int64(u.Retention),
		Reasons: putReasons(u.Reasons)}
}

// GetUsage returns what a store holds.
func GetUsage(m *store_v1.UsageResponse) tracestore.Usage {
	return tracestore.Usage{Oldest: getTime(m.GetOldest()), Bytes: m.GetBytes(), MaxBytes: m.GetMaxBytes(),
		Retention: time.Duration(m.GetRetention()), Reasons: getReasons(m.GetReasons())}
}
