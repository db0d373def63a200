package zipkin

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// v1Span is a span of Zipkin v1 as the readers of all its encodings fill it. Times are microseconds. Strings alias the request, or the
// reader's scratch.
type v1Span struct {
	traceID                   otlpdata.TraceID
	id, parent                otlpdata.SpanID
	name                      string
	timestamp, duration       int64
	hasTimestamp, hasDuration bool
	hasParent                 bool // a parent may be sent and be zero
	debug                     bool
	annotations               []v1Annotation
	tags                      []v1Tag
	droppedTags               uint32   // those that cannot be attributes
	hosts                     []v1Host // of the annotations and tags; the first one is none
	limit                     int      // of annotations, and of tags
}

// v1Annotation is something that happened at a time.
type v1Annotation struct {
	time  int64
	value string
	host  int32 // index in hosts
}

// v1Tag is a binary annotation, its value converted to what an attribute can hold.
type v1Tag struct {
	otlpdata.KeyValue
	host int32 // index in hosts
}

// v1Host is an endpoint. Its addresses are texts in JSON and packed in Thrift, IPv6 in the order of the network.
type v1Host struct {
	endpoint
	packed     bool
	packedIPv4 uint32
}

// reset makes the span ready to be filled.
func (s *v1Span) reset() {
	*s = v1Span{limit: s.limit, annotations: s.annotations[:0], tags: s.tags[:0], hosts: append(s.hosts[:0], v1Host{})}
}

// annotate adds an annotation that host made, if it is known. One without a value says nothing and is left out.
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

// tag adds a binary annotation that host made, if it is known. One that cannot be an attribute is only counted, unless it names a service:
// then it is kept, without a key.
func (s *v1Span) tag(key string, value otlpdata.Value, host *v1Host) error {
	if key == "" || key == otlpdata.FlagsAttribute { // which is not for clients to set
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

// restartNotes forgets the annotations, restartTags the binary ones: a list that repeats replaces the one before.
func (s *v1Span) restartNotes() { s.annotations = s.annotations[:0] }
func (s *v1Span) restartTags()  { s.tags, s.droppedTags = s.tags[:0], 0 }

func (s *v1Span) tooMany() error {
	return &otlpdata.LimitError{Limit: "annotations or binary annotations of one span", Max: s.limit}
}

// known returns the index of a host in hosts. Mostly, all annotations of a span have the same one.
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

// Core annotations: what a client and a server send and receive, and when messages are sent and received.
const (
	clientSend, clientReceive   = "cs", "cr"
	serverSend, serverReceive   = "ss", "sr"
	messageSend, messageReceive = "ms", "mr"
)

// Keys of binary annotations with a meaning of their own: the local component, and the addresses of peers.
const (
	localComponent = "lc"
	clientAddress  = "ca"
	serverAddress  = "sa"
	messageAddress = "ma"
)

// coreKind returns the kind of the spans that have this annotation, KindUnspecified if it is not a core annotation.
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
