package native

import (
	"fmt"
	"strings"
)

// ReadMessage reads the header of a Thrift message. args is the encoded struct of the method's
// arguments and aliases b. The message type and the sequence number are ignored.
func ReadMessage(b []byte, enc Encoding) (method string, args []byte, err error) {
	r := thriftReader{b: b, compact: enc == Compact}
	var name string
	if r.compact {
		name = r.compactHeader()
	} else {
		name = r.binaryHeader()
	}
	if r.err != nil {
		return "", nil, fmt.Errorf("read message header: %w", r.err)
	}
	return methodName(name), r.b[r.pos:], nil
}

// methodName returns a copy of the name. Known names need no allocation.
func methodName(name string) string {
	switch name {
	case "emitBatch":
		return "emitBatch"
	case "emitZipkinBatch":
		return "emitZipkinBatch"
	}
	const maxLength = 64 // enough for a log line
	return strings.Clone(name[:min(len(name), maxLength)])
}

func (r *thriftReader) compactHeader() string {
	const protocol, version, versionMask = 0x82, 1, 0x1f
	if len(r.b) < 2 {
		r.fail(errThriftTruncated)
		return ""
	}
	if r.b[0] != protocol {
		r.fail(fmt.Errorf("thrift: expected protocol id %02x but got %02x", protocol, r.b[0]))
		return ""
	}
	if v := r.b[1] & versionMask; v != version {
		r.fail(fmt.Errorf("thrift: expected version %02x but got %02x", version, v))
		return ""
	}
	r.pos = 2
	r.varint() // sequence number
	return r.text()
}

// binaryHeader reads a strict header, which begins with a version, or an old one, which begins with
// the length of the name.
func (r *thriftReader) binaryHeader() string {
	const version = 0x8001
	first := uint32(r.fixed32())
	if first>>31 == 1 {
		if v := first >> 16; v != version {
			r.fail(fmt.Errorf("thrift: expected version %04x but got %04x", version, v))
			return ""
		}
		name := r.text()
		r.advance(4) // sequence number
		return name
	}
	r.pos = 0
	if r.err != nil {
		return ""
	}
	name := r.text()
	r.advance(1 + 4) // message type, sequence number
	return name
}
