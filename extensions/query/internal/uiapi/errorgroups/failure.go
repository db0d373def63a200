package errorgroups

import (
	"net/http"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// failure is what a failed span says about its error.
type failure struct {
	// kind is the type, the first of these that the span has, or "":
	//
	//   - exception.type of its last exception
	//   - error.type
	//   - the HTTP status, if it is 400 or above: `HTTP 503`
	//   - the gRPC status, if it is not OK: `gRPC Unavailable`
	kind string
	// kindFields are the fields that have the type, as kindValue.
	kindFields []tracestore.Field
	kindValue  string
	// message is exception.message of its last exception, or the status message.
	message      string
	messageField tracestore.Field
	// stack is exception.stacktrace of its last exception, or "".
	stack string
}

// exceptionEvent is the name of events that describe exceptions, and the prefix of their
// attributes.
const exceptionEvent = "exception"

func spanField(key string) tracestore.Field {
	return tracestore.Field{Place: tracestore.SpanAttribute, Key: key}
}

func exceptionField(key string) tracestore.Field {
	return tracestore.Field{Place: tracestore.EventAttribute, Key: exceptionEvent + "." + key}
}

// failureOf returns what a failed span says.
func failureOf(s *otlpdata.Span) failure {
	f := failure{message: s.StatusMessage, messageField: tracestore.Field{Place: tracestore.StatusMessage}}
	for i := range slices.Backward(s.Events) {
		if s.Events[i].Name == exceptionEvent {
			f.exception(s.Events[i].Attributes)
			break
		}
	}
	if f.kind != "" {
		return f
	}
	if t, ok := otlpdata.Get(s.Attributes, "error.type"); ok && t.AsString() != "" {
		f.set(t.AsString(), t.AsString(), "error.type")
		return f
	}
	if f.status(s, http.StatusBadRequest, "http.response.status_code", "http.status_code") {
		f.kind = "HTTP " + f.kindValue
	} else if f.status(s, 1, "rpc.response.status_code", "rpc.grpc.status_code") {
		n, _ := strconv.ParseUint(f.kindValue, 10, 32)
		f.kind = "gRPC " + codes.Code(n).String()
	}
	return f
}

func (f *failure) exception(attributes []otlpdata.KeyValue) {
	if m, ok := otlpdata.Get(attributes, exceptionEvent+".message"); ok {
		f.message, f.messageField = m.AsString(), exceptionField("message")
	}
	if t, ok := otlpdata.Get(attributes, exceptionEvent+".type"); ok && t.AsString() != "" {
		f.kind, f.kindValue, f.kindFields = t.AsString(), t.AsString(), []tracestore.Field{exceptionField("type")}
	}
	if t, ok := otlpdata.Get(attributes, exceptionEvent+".stacktrace"); ok {
		f.stack = t.AsString()
	}
}

func (f *failure) set(kind, value string, keys ...string) {
	f.kind, f.kindValue = kind, value
	for _, key := range keys {
		f.kindFields = append(f.kindFields, spanField(key))
	}
}

// status sets the type to a status that is at least minimum, and reports whether the span has one.
func (f *failure) status(s *otlpdata.Span, minimum uint64, keys ...string) bool {
	for _, key := range keys {
		v, ok := otlpdata.Get(s.Attributes, key)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(v.AsString(), 10, 32); err == nil {
			if n >= minimum {
				f.set("", v.AsString(), keys...)
			}
			return n >= minimum
		}
	}
	return false
}

// Title returns what failed in one text: the type, or else the message without its variable parts,
// or "". It does not retain the span.
func Title(s *otlpdata.Span) string {
	f := failureOf(s)
	if f.kind != "" {
		return f.kind
	}
	p := patternOf(f.message)
	return p.String()
}
