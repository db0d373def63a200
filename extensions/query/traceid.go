package query

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// parseTraceID reads 1 to 32 hex digits, leading zeros optional.
func parseTraceID(s string) (id otlpdata.TraceID, err error) {
	const digits = 16 // of one half
	if len(s) > 2*digits {
		return id, fmt.Errorf("TraceID cannot be longer than 32 hex characters: %s", s)
	}
	low := s
	if len(s) > digits {
		low = s[len(s)-digits:]
		high, err := strconv.ParseUint(s[:len(s)-digits], 16, 64)
		if err != nil {
			return id, err
		}
		binary.BigEndian.PutUint64(id[:8], high)
	}
	n, err := strconv.ParseUint(low, 16, 64)
	if err != nil {
		return otlpdata.TraceID{}, err
	}
	binary.BigEndian.PutUint64(id[8:], n)
	return id, nil
}

// parsePathID is parseTraceID, and takes 8 or 16 bytes in base64 besides: the form of ids in JSON that was made of protobuf messages.
// Either alphabet will do, padded or not. The error is that of the hex form.
func parsePathID(s string) (otlpdata.TraceID, error) {
	id, err := parseTraceID(s)
	if err == nil {
		return id, nil
	}
	text := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	b, berr := base64.RawStdEncoding.DecodeString(text)
	if berr != nil || len(b) != 8 && len(b) != 16 {
		return otlpdata.TraceID{}, err
	}
	id = otlpdata.TraceID{}
	copy(id[16-len(b):], b)
	return id, nil
}
