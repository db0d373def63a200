package failure

import (
	"net/http"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Failure is what a failed span says about its error.
type Failure struct {
	// Type is the first of these that the span has, or "":
	//
	//   - exception.type of its last exception
	//   - error.type
	//   - the HTTP status, if it is 400 or above: `HTTP 503`
	//   - the gRPC status, if it is not OK: `gRPC Unavailable`
	Type string
	// TypeValue is the type as it is written in the attributes.
	TypeValue string
	// TypeKeys are the keys of the attributes that may hold the type: attributes of the span, or of
	// an event if TypeOfEvent is set.
	TypeKeys    []string
	TypeOfEvent bool
	// Message is exception.message of its last exception if MessageOfEvent is set, otherwise the
	// status message.
	Message        string
	MessageOfEvent bool
	// Stack is exception.stacktrace of its last exception, or "".
	Stack string
}

// The keys of the attributes of events that describe exceptions.
const (
	exceptionEvent  = "exception"
	TypeKey         = exceptionEvent + ".type"
	MessageKey      = exceptionEvent + ".message"
	StackKey        = exceptionEvent + ".stacktrace"
	errorTypeKey    = "error.type"
	minFailedStatus = http.StatusBadRequest
)

// Keys of attributes, by precedence. They must not be modified.
var (
	exceptionKeys = []string{TypeKey}
	errorKeys     = []string{errorTypeKey}
	httpKeys      = []string{"http.response.status_code", "http.status_code"}
	grpcKeys      = []string{"rpc.response.status_code", "rpc.grpc.status_code"}
)

// Of describes the failure of a span. It shares strings with the span.
func Of(s *otlpdata.Span) Failure {
	f := Failure{Message: s.StatusMessage}
	for i := range slices.Backward(s.Events) {
		if s.Events[i].Name == exceptionEvent {
			f.exception(s.Events[i].Attributes)
			break
		}
	}
	if f.Type != "" {
		return f
	}
	if t, ok := otlpdata.Get(s.Attributes, errorTypeKey); ok && t.AsString() != "" {
		f.Type, f.TypeValue, f.TypeKeys = t.AsString(), t.AsString(), errorKeys
		return f
	}
	if _, ok := f.status(s, minFailedStatus, httpKeys); ok {
		f.Type = "HTTP " + f.TypeValue
	} else if n, ok := f.status(s, 1, grpcKeys); ok {
		f.Type = "gRPC " + codes.Code(n).String()
	}
	return f
}

func (f *Failure) exception(attributes []otlpdata.KeyValue) {
	if m, ok := otlpdata.Get(attributes, MessageKey); ok {
		f.Message, f.MessageOfEvent = m.AsString(), true
	}
	if t, ok := otlpdata.Get(attributes, TypeKey); ok && t.AsString() != "" {
		f.Type, f.TypeValue, f.TypeKeys, f.TypeOfEvent = t.AsString(), t.AsString(), exceptionKeys, true
	}
	if t, ok := otlpdata.Get(attributes, StackKey); ok {
		f.Stack = t.AsString()
	}
}

// status sets the value of the type to a status that is at least minimum, and reports whether the
// span has one.
func (f *Failure) status(s *otlpdata.Span, minimum uint32, keys []string) (n uint32, ok bool) {
	for _, key := range keys {
		v, ok := otlpdata.Get(s.Attributes, key)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(v.AsString(), 10, 32); err == nil {
			if uint32(n) < minimum {
				return 0, false
			}
			f.TypeValue, f.TypeKeys = v.AsString(), keys
			return uint32(n), true
		}
	}
	return 0, false
}

// Title returns a short description of the failure: the type, or else the message without its
// variable parts, or "". It does not retain the span.
func Title(s *otlpdata.Span) string {
	f := Of(s)
	if f.Type != "" {
		return f.Type
	}
	p := PatternOf(f.Message)
	return p.String()
}
