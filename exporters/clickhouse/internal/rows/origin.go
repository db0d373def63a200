package rows

import (
	"encoding/binary"
	"errors"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// originOf returns the value of the column origin: the resource, its schema URL and the scope, each
// with its length, and the schema URL of the scope.
func originOf(r *otlpdata.Resource, s *otlpdata.Scope) string {
	dst := make([]byte, 0, len(r.Raw)+len(r.SchemaURL)+len(s.Raw)+len(s.SchemaURL)+3*binary.MaxVarintLen64)
	dst = appendText(appendText(appendText(dst, string(r.Raw)), r.SchemaURL), string(s.Raw))
	return string(append(dst, s.SchemaURL...))
}

var errOrigin = errors.New("invalid origin")

// readOrigin decodes a value of the column origin.
func readOrigin(value string) (r otlpdata.Resource, s otlpdata.Scope, err error) {
	var parts [3]string
	for i := range parts {
		content, size, ok := contentOf(value, protoenc.Length)
		if !ok {
			return r, s, errOrigin
		}
		parts[i], value = content, value[size:]
	}
	if r, err = otlpdata.ReadResource([]byte(parts[0]), parts[1]); err != nil {
		return r, s, err
	}
	s, err = otlpdata.ReadScope([]byte(parts[2]), value)
	return r, s, err
}
