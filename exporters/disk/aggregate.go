package disk

import "github.com/tracing-backend/tracing/pipeline/tracestore"

var _ tracestore.GroupAggregator = (*exporter)(nil)
