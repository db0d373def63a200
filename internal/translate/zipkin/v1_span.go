package zipkin

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// v1Span is a span of Zipkin v1, which the readers of all encodings fill. Times are microseconds.
// Strings alias the request or memory of the reader.
type v1Span struct {
	traceID                   otlpdata.TraceID
	id, parent                otlpdata.SpanID
	name                      string
	timestamp, duration       int64
	hasTimestamp, hasDuration bool
	hasParent                 bool // a parent id may be present and zero
	debug                     bool
	annotations               []v1Annotation
	tags                      []v1Tag
	droppedTags               uint32   // number of tags that cannot be attributes
	hosts                     []v1Host // of the annotations and tags; the first one is empty
	limit                     int      // maximum number of annotations, and of tags
}

// v1Annotation is a timestamped event.
type v1Annotation struct {
	time  int64
	value string
	host  int32 // index in hosts
}

// v1Tag is a binary annotation with its value converted to an attribute value.
type v1Tag struct {
	otlpdata.KeyValue
	host int32 // index in hosts
}

// v1Host is an endpoint. Its addresses are texts in JSON. In Thrift they are packed, IPv6 in
// network byte order.
type v1Host struct {
	endpoint
	packed     bool
	packedIPv4 uint32
}

// reset clears the span.
func (s *v1Span) reset() {
	*s = v1Span{limit: s.limit, annotations: s.annotations[:0], tags: s.tags[:0], hosts: append(s.hosts[:0], v1Host{})}
}

// annotate adds an annotation. host is empty if it is unknown. Annotations without a value are
// ignored.
func (s *v1Span) annotate(time int64, value string, host *v1Host) error {
	if value == "" {
		return nil
	}
	if len(s.annotations) >= s.limit || len(s.hosts) > 2*s.limit {
		return s.tooMany()
	}
	s.annotations = append(s.annotations, v1Annotation{time, value, s.known(host)})
	return nil
}

// tag adds a binary annotation. host is empty if it is unknown. A binary annotation that cannot be
// an attribute is only counted; if it names a service, it is kept without a key.
func (s *v1Span) tag(key string, value otlpdata.Value, host *v1Host) error {
	if key == "" || key == otlpdata.FlagsAttribute { // clients must not set FlagsAttribute
		s.droppedTags++
		if key = ""; host.service == "" {
			return nil
		}
	}
	if len(s.tags) >= s.limit || len(s.hosts) > 2*s.limit {
		return s.tooMany()
	}
	s.tags = append(s.tags, v1Tag{otlpdata.KeyValue{Key: key, Value: value}, s.known(host)})
	return nil
}

// clearAnnotations and clearTags empty the lists, because a repeated list replaces the previous
// one.
func (s *v1Span) clearAnnotations() { s.annotations = s.annotations[:0] }
func (s *v1Span) clearTags()        { s.tags, s.droppedTags = s.tags[:0], 0 }

func (s *v1Span) tooMany() error {
	return &otlpdata.LimitError{Limit: "annotations or binary annotations of one span", Max: s.limit}
}

// known returns the index of a host in hosts. Usually all annotations of a span have the same host.
func (s *v1Span) known(h *v1Host) int32 {
	if *h == (v1Host{}) {
		return 0
	}
	last := len(s.hosts) - 1
	if s.hosts[last] == *h {
		return int32(last)
	}
	s.hosts = append(s.hosts, *h)
	return int32(last + 1)
}

// when returns the time of the first annotation with this value.
func (s *v1Span) when(value string) (time int64, ok bool) {
	for i := range s.annotations {
		if s.annotations[i].value == value {
			return s.annotations[i].time, true
		}
	}
	return 0, false
}

// Core annotations: client, server and message sent or received.
const (
	clientSend, clientReceive   = "cs", "cr"
	serverSend, serverReceive   = "ss", "sr"
	messageSend, messageReceive = "ms", "mr"
)

// Keys of binary annotations with a special meaning: the local component and the addresses of
// peers.
const (
	localComponent = "lc"
	clientAddress  = "ca"
	serverAddress  = "sa"
	messageAddress = "ma"
)

// coreKind returns the span kind for a core annotation, and KindUnspecified for any other
// annotation.
func coreKind(value string) int32 {
	switch value {
	case clientSend, clientReceive:
		return otlpdata.KindClient
	case serverSend, serverReceive:
		return otlpdata.KindServer
	case messageSend:
		return otlpdata.KindProducer
	case messageReceive:
		return otlpdata.KindConsumer
	}
	return otlpdata.KindUnspecified
}
