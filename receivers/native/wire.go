package native

import (
	"github.com/tracing-backend/tracing/internal/translate/native"
)

// wireFormat is a form of a batch on the wire.
type wireFormat struct {
	transport string
	// translate fails with [native.ErrOutput] where it makes more than most bytes, 0 being any number.
	translate func(body []byte, most int) (otlp []byte, err error)
	// memory bounds what translate holds at once, besides the body, while it makes at most growth times the body and [native.Base] bytes.
	memory func(body []byte, growth int) int64
}

var (
	postSpans   = wireFormat{"grpc", native.FromPostSpans, native.PostSpansMemory}
	thriftBatch = wireFormat{"http", fromThrift, thriftMemory}
)

// fromThrift needs no bound: the binary protocol is more verbose than what becomes of it.
func fromThrift(body []byte, _ int) ([]byte, error) {
	b, err := native.FromThrift(body, native.Binary)
	return b.OTLP, err
}

// thriftMemory: no tag, log or reference takes less than 15 bytes in the binary protocol, which holds lists and output down.
func thriftMemory(body []byte, _ int) int64 {
	const perByte = 10
	return perByte*int64(len(body)) + native.Base
}
