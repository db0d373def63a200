package native

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// PromoteTags moves tags of a span in Jaeger's model to the corresponding fields of OTLP: kind,
// status and trace state. It returns the scope that the tags name. If a tag is repeated, the last
// one is used and the others stay attributes; for the tags of the scope, which exporters write
// first, the first one is used. Tags that should be strings but are not stay attributes.
func PromoteTags(s *otlpdata.Span) (scope, version string) {
	l := promotion{kvs: s.Attributes}
	if !l.find() {
		return "", ""
	}
	if l.spanKind > 0 {
		s.Kind = otlpdata.KindOf(l.takeText(l.spanKind))
	}
	if l.traceState > 0 {
		s.TraceState = l.takeText(l.traceState)
	}
	if l.scopeName > 0 {
		scope, version = l.takeText(l.scopeName), l.takeText(l.scopeVersion)
	}
	l.promoteStatus(s)
	s.Attributes = l.rest()
	return scope, version
}

// promotion holds the positions of the attributes that have a field in OTLP: index plus 1, or 0 if
// absent.
type promotion struct {
	kvs []otlpdata.KeyValue

	spanKind, traceState, scopeName, scopeVersion          int
	isError, statusCode, description, httpCode, httpReason int

	taken [7]int // indexes of the moved attributes
	n     int
}

// find sets the positions. It reports whether there is any such attribute.
func (l *promotion) find() bool {
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

// place returns the position field for an attribute, or nil if it has none.
func (l *promotion) place(kv *otlpdata.KeyValue) *int {
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

// takeText returns the string at a position and marks the attribute as moved. It returns "" for
// position 0.
func (l *promotion) takeText(at int) string {
	if at == 0 {
		return ""
	}
	l.taken[l.n] = at - 1
	l.n++
	return l.kvs[at-1].Value.Str()
}

// promoteStatus sets the status from the first of these tags that is present: error, status code,
// HTTP status code.
func (l *promotion) promoteStatus(s *otlpdata.Span) {
	code := l.takeText(l.statusCode)
	switch {
	case l.isError > 0:
		l.takeText(l.isError)
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
		s.StatusMessage = l.takeText(l.description)
	case l.isError > 0:
		s.StatusMessage = l.reason()
	}
}

// reason returns the text of the HTTP status. The tag stays an attribute.
func (l *promotion) reason() string {
	if l.httpReason == 0 {
		return ""
	}
	return l.kvs[l.httpReason-1].Value.Str()
}

// rest returns the attributes that were not moved, in order.
func (l *promotion) rest() []otlpdata.KeyValue {
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

func statusOf(s string) int32 {
	switch {
	case strings.EqualFold(s, "OK"):
		return otlpdata.StatusOK
	case strings.EqualFold(s, "ERROR"):
		return otlpdata.StatusError
	}
	return otlpdata.StatusUnset
}

// httpFailed reports whether an HTTP status code makes the span fail. Client errors (4xx) do not
// make a server span fail. 399 counts as a failure, as in the original implementation.
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

// takeEventName removes the name of an event from its fields and returns both. The name is the
// first string field `event`, because exporters write it first.
func takeEventName(fields []otlpdata.KeyValue) (string, []otlpdata.KeyValue) {
	for i := range fields {
		if kv := &fields[i]; kv.Key == eventField && kv.Value.Kind() == otlpdata.ValueString {
			return kv.Value.Str(), slices.Delete(fields, i, i+1)
		}
	}
	return "", fields
}
