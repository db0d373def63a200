package core

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// ParseTraceID parses 1 to 32 hex digits. Leading zeros are optional. The error contains the id.
func ParseTraceID(s string) (id otlpdata.TraceID, err error) {
	const digits = 16 // per half
	if len(s) > 2*digits {
		return id, fmt.Errorf("TraceID cannot be longer than 32 hex characters: %s", s)
	}
	low := s
	if len(s) > digits {
		low = s[len(s)-digits:]
		high, err := strconv.ParseUint(s[:len(s)-digits], 16, 64)
		if err != nil {
			return id, badTraceID(s)
		}
		binary.BigEndian.PutUint64(id[:8], high)
	}
	n, err := strconv.ParseUint(low, 16, 64)
	if err != nil {
		return otlpdata.TraceID{}, badTraceID(s)
	}
	binary.BigEndian.PutUint64(id[8:], n)
	return id, nil
}

func badTraceID(s string) error {
	return fmt.Errorf("invalid trace id %q: use 1 to 32 hexadecimal digits", s)
}
