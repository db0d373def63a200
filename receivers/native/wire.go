package native

import (
	"github.com/tracing-backend/tracing/internal/translate/native"
)

// wireFormat is an encoding of batches.
type wireFormat struct {
	transport string
	// translate fails with [native.ErrOutputTooLarge] if the output exceeds maxOutput bytes. 0
	// disables the limit.
	translate func(body []byte, maxOutput int) (otlp []byte, err error)
	// memory returns the maximum memory of translate in bytes, without the body, if the output has
	// at most growth*len(body) + [native.BaseMemory] bytes.
	memory func(body []byte, growth int) int64
}

var (
	postSpans   = wireFormat{"grpc", native.FromPostSpans, native.PostSpansMemory}
	thriftBatch = wireFormat{"http", fromThrift, thriftMemory}
)

// fromThrift ignores the limit, because OTLP is more compact than the binary Thrift protocol.
func fromThrift(body []byte, _ int) ([]byte, error) {
	b, err := native.FromThrift(body, native.Binary)
	return b.OTLP, err
}

// thriftMemory relies on the minimum size of a tag, log or reference in the binary Thrift protocol,
// which is 15 bytes.
func thriftMemory(body []byte, _ int) int64 {
	const perByte = 10
	return perByte*int64(len(body)) + native.BaseMemory
}
