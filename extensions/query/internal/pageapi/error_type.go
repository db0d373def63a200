package pageapi

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// errorType returns the type of the error of a span, and its message. The type is the first of
// these that the span has:
//
//   - exception.type of its last exception
//   - error.type
//   - the HTTP status, if it is 400 or above: `HTTP 503`
//   - the gRPC status, if it is not OK: `gRPC Unavailable`
//   - the status message, with n instead of each number, so that the ids in it do not matter
//
// It is "" if the span has none. The message is exception.message or the status message.
func errorType(s *otlpdata.Span) (errorType, message string) {
	message = s.StatusMessage
	for i := range slices.Backward(s.Events) {
		e := &s.Events[i]
		if e.Name != "exception" {
			continue
		}
		if m, ok := otlpdata.Get(e.Attributes, "exception.message"); ok {
			message = m.AsString()
		}
		if t, ok := otlpdata.Get(e.Attributes, "exception.type"); ok {
			return t.AsString(), message
		}
		break
	}
	if t, ok := otlpdata.Get(s.Attributes, "error.type"); ok {
		return t.AsString(), message
	}
	if status := number(s.Attributes, "http.response.status_code", "http.status_code"); status >= http.StatusBadRequest {
		return "HTTP " + strconv.FormatUint(status, 10), message
	}
	if status := number(s.Attributes, "rpc.response.status_code", "rpc.grpc.status_code"); status > 0 {
		return "gRPC " + codes.Code(status).String(), message
	}
	return withoutNumbers(message), message
}

// number returns the value of the first of the keys that is an integer, also as text, or 0.
func number(kvs []otlpdata.KeyValue, keys ...string) uint64 {
	for _, key := range keys {
		v, ok := otlpdata.Get(kvs, key)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(v.AsString(), 10, 32); err == nil {
			return n
		}
	}
	return 0
}

// numbers matches words of hexadecimal digits with at least one decimal digit, and decimal digits.
var numbers = regexp.MustCompile(`\b[0-9a-fA-F]*[0-9][0-9a-fA-F]*\b|[0-9]+`)

func withoutNumbers(text string) string {
	return numbers.ReplaceAllLiteralString(storequery.FacetText(text), "n")
}
