package otlpdata

import "encoding/hex"

// TraceID is a trace id as in OTLP: 16 bytes, big-endian. A 64-bit id has eight leading zero bytes.
type TraceID [16]byte

// SpanID is a span id as in OTLP: 8 bytes, big-endian.
type SpanID [8]byte

// IsZero reports whether all bytes of the id are zero. OTLP calls such an id invalid; it is stored
// and counted nevertheless.
func (t TraceID) IsZero() bool { return t == TraceID{} }

// String returns the text form for logs and the JSON API: 16 lower-case hex digits if the high half
// is zero, otherwise 32.
func (t TraceID) String() string {
	if [8]byte(t[:8]) == [8]byte{} {
		return hex.EncodeToString(t[8:])
	}
	return hex.EncodeToString(t[:])
}

// IsZero reports whether all bytes of the id are zero. A zero parent id means that there is no
// parent.
func (s SpanID) IsZero() bool { return s == SpanID{} }

// String returns 16 lower-case hex digits.
func (s SpanID) String() string { return hex.EncodeToString(s[:]) }

// Kinds of a span, with their numbers in OTLP. Readers treat other numbers as KindUnspecified.
const (
	KindUnspecified int32 = iota
	KindInternal
	KindServer
	KindClient
	KindProducer
	KindConsumer
)

// Status codes of a span, with their numbers in OTLP.
const (
	StatusUnset int32 = iota
	StatusOK
	StatusError
)

// Resource is the entity that produced spans. Its strings alias the chunk it was read from.
type Resource struct {
	// Service is the result of ServiceName for the attributes. It is never empty.
	Service           string
	Attributes        []KeyValue
	DroppedAttributes uint32
	SchemaURL         string
	// Raw is the encoded Resource message, without tag and length.
	Raw []byte
}

// Scope is the instrumentation scope of spans. Its strings alias the chunk it was read from.
type Scope struct {
	Name, Version     string
	Attributes        []KeyValue
	DroppedAttributes uint32
	SchemaURL         string
	// Raw is the encoded InstrumentationScope message, without tag and length.
	Raw []byte
}

// Span is one span as received. Times are nanoseconds since the Unix epoch. Its strings alias the
// chunk.
type Span struct {
	TraceID                                        TraceID
	SpanID, ParentID                               SpanID
	TraceState, Name                               string
	Kind                                           int32
	StatusCode                                     int32
	StatusMessage                                  string
	Flags                                          uint32
	Start, End                                     uint64
	DroppedAttributes, DroppedEvents, DroppedLinks uint32
	Attributes                                     []KeyValue
	Events                                         []Event
	Links                                          []Link
	// Raw is the encoded Span message, without tag and length.
	Raw []byte
}

// Event is something that happened during a span. Time is in nanoseconds since the Unix epoch.
type Event struct {
	Time              uint64
	Name              string
	Attributes        []KeyValue
	DroppedAttributes uint32
}

// Link is a span's reference to another span.
type Link struct {
	TraceID           TraceID
	SpanID            SpanID
	TraceState        string
	Attributes        []KeyValue
	DroppedAttributes uint32
	Flags             uint32
}

// KeyValue is one attribute. A list may contain a key several times; readers use the first.
type KeyValue struct {
	Key   string
	Value Value
}

// Get returns the first value of key.
func Get(kvs []KeyValue, key string) (Value, bool) {
	for i := range kvs {
		if kvs[i].Key == key {
			return kvs[i].Value, true
		}
	}
	return Value{}, false
}
