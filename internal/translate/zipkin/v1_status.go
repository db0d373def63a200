package zipkin

import (
	"math"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// v1Status determines the status of a span from its tags. Different generations of libraries write
// different tags.
type v1Status struct {
	census, otel, http v1StatusSource
	failed             bool // a tag `error` is present
}

// v1StatusSource is the status in one kind of tags. code is a status code of OTLP.
type v1StatusSource struct {
	code    int32
	known   bool // whether code was set
	message string
}

// takeAttribute reads a status tag. It reports whether the tag carries nothing else, so that it
// does not become an attribute.
func (s *v1Status) takeAttribute(kv *otlpdata.KeyValue) bool {
	switch kv.Key {
	case "error":
		s.failed = true
		said := kv.Value.AsString()
		return said == "" || said == "true" // other texts are kept, as for v2
	case "census.status_code":
		if n, ok := statusNumber(kv.Value); ok {
			s.census.know(either(n == 0, otlpdata.StatusOK, otlpdata.StatusError))
		}
	case "census.status_description", "opencensus.status_description":
		s.census.message = kv.Value.Str()
	case "otel.status_code":
		var named v2Status
		if n, ok := statusNumber(kv.Value); ok {
			s.otel.know(n)
		} else if named.codeTag(kv.Value.Str()) {
			s.otel.know(named.code)
		}
	case "otel.status_description":
		s.otel.message = kv.Value.Str()
	case "http.status_code":
		if n, ok := statusNumber(kv.Value); ok {
			s.http.know(either(100 <= n && n < 400, otlpdata.StatusUnset, otlpdata.StatusError))
		}
		return false
	case "http.status_message":
		s.http.message = kv.Value.Str()
		return false
	default:
		return false
	}
	return true
}

func either(condition bool, yes, no int32) int32 {
	if condition {
		return yes
	}
	return no
}

func (f *v1StatusSource) know(code int32) { f.code, f.known = code, true }

// statusNumber returns the code in an attribute, which is an integer or a decimal string.
func statusNumber(v otlpdata.Value) (code int32, ok bool) {
	switch v.Kind() {
	case otlpdata.ValueInt:
		n := v.Int()
		return int32(n), n >= math.MinInt32 && n <= math.MaxInt32
	case otlpdata.ValueString:
		n, err := strconv.ParseInt(v.Str(), 10, 32)
		return int32(n), err == nil
	}
	return 0, false
}

// apply sets the status of the span from the source with the highest priority.
func (s *v1Status) apply(span *otlpdata.Span) {
	from := s.http
	switch {
	case s.census.known:
		from = s.census
	case s.otel.known:
		from = s.otel
	case s.failed:
		from = v1StatusSource{code: otlpdata.StatusError, known: true, message: s.census.message}
		if from.message == "" {
			from.message = s.otel.message
		}
	}
	if from.known {
		span.StatusCode, span.StatusMessage = from.code, from.message
	}
}
