// The first of Zipkin's models, in which a span is what its annotations tell.
namespace go zipkincore

// Values of annotations that time a call: a request or an answer leaves one side and arrives at the other.
const string CLIENT_SEND = "cs"
const string CLIENT_RECV = "cr"
const string SERVER_SEND = "ss"
const string SERVER_RECV = "sr"

// Values of annotations that time a message on its way through a broker.
const string MESSAGE_SEND = "ms"
const string MESSAGE_RECV = "mr"

// Values of annotations that time bytes on the wire, and pieces of requests and answers.
const string WIRE_SEND = "ws"
const string WIRE_RECV = "wr"
const string CLIENT_SEND_FRAGMENT = "csf"
const string CLIENT_RECV_FRAGMENT = "crf"
const string SERVER_SEND_FRAGMENT = "ssf"
const string SERVER_RECV_FRAGMENT = "srf"

// Keys of binary annotations that name a component or the address of the other side.
const string LOCAL_COMPONENT = "lc"
const string CLIENT_ADDR = "ca"
const string SERVER_ADDR = "sa"
const string MESSAGE_ADDR = "ma"

// Endpoint is a service on a host.
struct Endpoint {
  // The address's four bytes, the first of them the most significant.
  1: i32 ipv4
  // Without a sign on the network: add 65536 to a negative one.
  2: i16 port
  3: string service_name
  // 16 bytes.
  4: optional binary ipv6
}

// Annotation is something that happened at a time.
struct Annotation {
  // Microseconds since the epoch.
  1: i64 timestamp
  2: string value
  3: optional Endpoint host
}

// AnnotationType is the type of the value of a binary annotation. Numbers are big-endian.
enum AnnotationType {
  BOOL   = 0
  BYTES  = 1
  I16    = 2
  I32    = 3
  I64    = 4
  DOUBLE = 5
  STRING = 6
}

// BinaryAnnotation is a tag.
struct BinaryAnnotation {
  1: string key
  2: binary value
  3: AnnotationType annotation_type
  4: optional Endpoint host
}

// Span is one side's view of a call, or of work within a service. Both sides of a call share the id.
struct Span {
  // The less significant half.
  1: i64 trace_id
  3: string name
  4: i64 id
  5: optional i64 parent_id
  6: list<Annotation> annotations
  8: list<BinaryAnnotation> binary_annotations
  9: optional bool debug = false
  // Microseconds since the epoch.
  10: optional i64 timestamp
  // Microseconds.
  11: optional i64 duration
  12: optional i64 trace_id_high
}
