package memory

import "github.com/tracing-backend/tracing/pipeline/sampling"

// The store holds the state of adaptive sampling, which is lost when the process ends. The embedded
// sampling.Memory implements the methods.
var _ sampling.Store = (*exporter)(nil)
