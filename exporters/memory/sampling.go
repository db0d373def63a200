package memory

import "github.com/tracing-backend/tracing/pipeline/sampling"

// The store keeps what adaptive sampling learns, and as ever loses it with the process.
var _ sampling.Store = (*exporter)(nil)
