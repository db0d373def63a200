package zipkin

import (
	"github.com/tracing-backend/tracing/internal/translate/zipkin"
)

// format is a version and encoding of spans.
type format struct {
	translate func(body []byte, opt zipkin.Options) (otlp []byte, err error)
	// memory returns the maximum memory of translate in bytes, without the body. maxItems is the
	// maximum number of items in a list.
	memory func(body []byte, maxItems int) int64
}

var (
	v1JSON   = format{zipkin.FromV1JSON, zipkin.V1JSONMemory}
	v1Thrift = format{zipkin.FromV1Thrift, zipkin.V1ThriftMemory}
	v2JSON   = format{zipkin.FromV2JSON, zipkin.V2JSONMemory}
	v2Proto  = format{zipkin.FromV2Proto, zipkin.V2ProtoMemory}
)
