package otlpdata

import "unicode/utf8"

// Names that readers and indexers show where a span has none that can be shown (reference 5.2, the 2.20 generation).
const (
	MissingServiceName   = "missing-service-name"
	WrongTypeServiceName = "service-name-wrong-type"
	EmptyServiceName     = "empty-service-name"
	EmptySpanName        = "empty-span-name"
	InvalidSpanName      = "invalid-span-name"
)

const serviceNameKey = "service.name"

// ServiceName returns the service of a resource with these attributes: the first service.name, or a name that says what is wrong
// with it. Invalid UTF-8 passes; who shows the name replaces it there.
func ServiceName(attributes []KeyValue) string {
	v, ok := Get(attributes, serviceNameKey)
	switch {
	case !ok:
		return MissingServiceName
	case v.kind != ValueString:
		return WrongTypeServiceName
	case v.data == "":
		return EmptyServiceName
	}
	return v.data
}

// Operation returns the span's name, or the name that stands for an empty one or one of invalid UTF-8.
func (s *Span) Operation() string {
	switch {
	case s.Name == "":
		return EmptySpanName
	case !utf8.ValidString(s.Name):
		return InvalidSpanName
	}
	return s.Name
}

// Duration returns the span's length in nanoseconds. Where the end is not after the start it is 1, as if the span had ended one
// nanosecond after its start; mended tells that this was done to an end that lay before the start.
func (s *Span) Duration() (ns uint64, mended bool) {
	if s.End > s.Start {
		return s.End - s.Start, false
	}
	return 1, s.End < s.Start
}

// StatusName returns `ok` or `error`, and `unset` for every other code of a status.
func StatusName(code int32) string {
	switch code {
	case StatusOK:
		return "ok"
	case StatusError:
		return "error"
	}
	return "unset"
}

// KindName returns `client`, `server`, `producer`, `consumer` or `internal`, and "" for an unspecified or unknown kind.
func (s *Span) KindName() string {
	switch s.Kind {
	case KindInternal:
		return "internal"
	case KindServer:
		return "server"
	case KindClient:
		return "client"
	case KindProducer:
		return "producer"
	case KindConsumer:
		return "consumer"
	}
	return ""
}
