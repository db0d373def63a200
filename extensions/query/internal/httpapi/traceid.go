package httpapi

import (
	"encoding/base64"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// ParsePathID is like core.ParseTraceID, but also accepts 8 or 16 bytes in base64, which is how ids
// look in JSON that was generated from protobuf messages. Both alphabets are accepted, with and
// without padding. The error is the same as for the hex form.
func ParsePathID(s string) (otlpdata.TraceID, error) {
	id, err := core.ParseTraceID(s)
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
