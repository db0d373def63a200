package native

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Lift moves what OTLP has fields for out of the attributes of a span in the native model (reference 5.4): kind, status, trace state.
// It returns the scope that the attributes named. Of tags that repeat, the last one counts and the others stay; of the scope's, which
// exporters write first, the first one. Tags that should be strings and are not stay, too.
func Lift(s *otlpdata.Span) (scope, version string) {
	l := lift{kvs: s.Attributes}
	if !l.find() {
		return "", ""
	}
	if l.spanKind > 0 {
		s.Kind = kindOf(l.take(l.spanKind))
	}
	if l.traceState > 0 {
		s.TraceState = l.take(l.traceState)
	}
	if l.scopeName > 0 {
		scope, version = l.take(l.scopeName), l.take(l.scopeVersion)
	}
	l.liftStatus(s)
	s.Attributes = l.rest()
	return scope, version
}

// lift says where the attributes are that mean something to OTLP: their index plus 1, 0 where there is none.
type lift struct {
	kvs []otlpdata.KeyValue

	spanKind, traceState, scopeName, scopeVersion          int
	isError, statusCode, description, httpCode, httpReason int

	taken [7]int // indexes of what was moved
	n     int
}

// find looks at all attributes and returns whether one of them means something.
func (l *lift) find() bool {
	found := false
	for i := range l.kvs {
		kv := &l.kvs[i]
		at := l.place(kv)
		if at == nil {
			continue
		}
		found = true
		switch {
		case at == &l.isError && !kv.Value.Bool():
			*at = 0
		case *at == 0 || at != &l.scopeName && at != &l.scopeVersion:
			*at = i + 1
		}
	}
	return found
}

// place returns where to note the position of an attribute, nil if it means nothing.
func (l *lift) place(kv *otlpdata.KeyValue) *int {
	kind := kv.Value.Kind()
	if kind != otlpdata.ValueString {
		switch {
		case kind == otlpdata.ValueBool && kv.Key == "error":
			return &l.isError
		case kind == otlpdata.ValueInt && kv.Key == "http.status_code":
			return &l.httpCode
		}
		return nil
	}
	switch kv.Key {
	case "span.kind":
		return &l.spanKind
	case "otel.status_code":
		return &l.statusCode
	case "otel.status_description":
		return &l.description
	case "http.status_code":
		return &l.httpCode
	case "http.status_message":
		return &l.httpReason
	case "w3c.tracestate":
		return &l.traceState
	case "otel.scope.name":
		return &l.scopeName
	case "otel.scope.version":
		return &l.scopeVersion
	}
	return nil
}

// take returns the string at a position, and notes that it moves. "" is at none.
func (l *lift) take(at int) string {
	if at == 0 {
		return ""
	}
	l.taken[l.n] = at - 1
	l.n++
	return l.kvs[at-1].Value.Str()
}

// liftStatus sets the status by the first of these that is there: the tag error, the status code, the status code of HTTP.
func (l *lift) liftStatus(s *otlpdata.Span) {
	code := l.take(l.statusCode)
	switch {
	case l.isError > 0:
		l.take(l.isError)
		s.StatusCode = otlpdata.StatusError
	case l.statusCode > 0:
		s.StatusCode = statusOf(code)
	case l.httpCode > 0 && httpFailed(l.kvs[l.httpCode-1].Value, s.Kind):
		s.StatusCode = otlpdata.StatusError
		s.StatusMessage = l.reason()
		return
	default:
		return
	}
	switch {
	case l.description > 0:
		s.StatusMessage = l.take(l.description)
	case l.isError > 0:
		s.StatusMessage = l.reason()
	}
}

// reason returns the text of the HTTP status, which stays an attribute.
func (l *lift) reason() string {
	if l.httpReason == 0 {
		return ""
	}
	return l.kvs[l.httpReason-1].Value.Str()
}

// rest returns the attributes that were not moved, in order.
func (l *lift) rest() []otlpdata.KeyValue {
	taken := l.taken[:l.n]
	if len(taken) == 0 {
		return l.kvs
	}
	slices.Sort(taken)
	out := l.kvs[:taken[0]]
	for i, at := range taken {
		end := len(l.kvs)
		if i+1 < len(taken) {
			end = taken[i+1]
		}
		out = append(out, l.kvs[at+1:end]...)
	}
	return out
}

func kindOf(s string) int32 {
	switch s {
	case "client":
		return otlpdata.KindClient
	case "server":
		return otlpdata.KindServer
	case "producer":
		return otlpdata.KindProducer
	case "consumer":
		return otlpdata.KindConsumer
	case "internal":
		return otlpdata.KindInternal
	}
	return otlpdata.KindUnspecified
}

func statusOf(s string) int32 {
	switch {
	case strings.EqualFold(s, "OK"):
		return otlpdata.StatusOK
	case strings.EqualFold(s, "ERROR"):
		return otlpdata.StatusError
	}
	return otlpdata.StatusUnset
}

// httpFailed tells from the status code of a request whether the span failed. Mistakes of its client do not make a server's span fail.
// That 399 does is what the field does.
func httpFailed(v otlpdata.Value, kind int32) bool {
	code := v.Int()
	if v.Kind() == otlpdata.ValueString {
		var err error
		if code, err = strconv.ParseInt(v.Str(), 10, 64); err != nil {
			return false
		}
	}
	switch {
	case code >= 100 && code < 399:
		return false
	case code >= 400 && code < 500:
		return kind != otlpdata.KindServer
	}
	return true
}

// liftEventName takes the name of an event out of its fields: the first string `event`, since exporters write it first.
func liftEventName(fields []otlpdata.KeyValue) (string, []otlpdata.KeyValue) {
	for i := range fields {
		if kv := &fields[i]; kv.Key == eventField && kv.Value.Kind() == otlpdata.ValueString {
			return kv.Value.Str(), slices.Delete(fields, i, i+1)
		}
	}
	return "", fields
}
