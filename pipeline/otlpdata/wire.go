package otlpdata

import (
	"errors"
	"unsafe"
)

// Errors in the content of messages. Like the errors of package protoenc, they are permanent: the
// request is not a valid OTLP message.
var (
	errTraceID = errors.New("otlp: trace id must have 0 or 16 bytes")
	errDepth   = errors.New("otlp: attribute values are nested too deeply")
	errSpanID  = errors.New("otlp: span id must have 0 or 8 bytes")
)

// unsafeString returns b as a string without copying. This is safe because chunks are immutable.
func unsafeString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// unsafeBytes returns s as bytes without copying. They must not be modified.
func unsafeBytes(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}
