package otlpdata

import "unicode/utf8"

// Names that readers and indexers show if a span or resource has no usable name. Version 2.20 of
// the Jaeger collector writes the same names.
const (
	MissingServiceName   = "missing-service-name"
	WrongTypeServiceName = "service-name-wrong-type"
	EmptyServiceName     = "empty-service-name"
	EmptySpanName        = "empty-span-name"
	InvalidSpanName      = "invalid-span-name"
)

const serviceNameKey = "service.name"

// ServiceName returns the service of a resource with these attributes: the first service.name, or a
// name that describes what is wrong with it. The result may contain invalid UTF-8; replace it when
// showing the name.
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

// Operation returns the name of the span, or a replacement if the name is empty or invalid UTF-8.
func (s *Span) Operation() string {
	switch {
	case s.Name == "":
		return EmptySpanName
	case !utf8.ValidString(s.Name):
		return InvalidSpanName
	}
	return s.Name
}

// Duration returns the duration of the span in nanoseconds. If the span does not end after its
// start, the duration is 1. repaired reports whether the end was before the start.
func (s *Span) Duration() (ns uint64, repaired bool) {
	if s.End > s.Start {
		return s.End - s.Start, false
	}
	return 1, s.End < s.Start
}

// StatusName returns `ok` or `error`, and `unset` for every other status code.
func StatusName(code int32) string {
	switch code {
	case StatusOK:
		return "ok"
	case StatusError:
		return "error"
	}
	return "unset"
}

// KindName returns `client`, `server`, `producer`, `consumer` or `internal`, and "" for an
// unspecified or unknown kind.
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

// KindOf returns the kind with a name that KindName returns, and KindUnspecified for other names.
func KindOf(name string) int32 {
	for kind := KindInternal; kind <= KindConsumer; kind++ {
		if (&Span{Kind: kind}).KindName() == name {
			return kind
		}
	}
	return KindUnspecified
}
