// Code generated from zipkincore.thrift by internal/wire/generate. DO NOT EDIT.

// Package zipkincore is generated from zipkincore.thrift.
//
// The first of Zipkin's models, in which a span is what its annotations tell.
package zipkincore

import (
	"context"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/tracing-backend/tracing/internal/wire/thriftio"
)

// Values of annotations that time a call: a request or an answer leaves one side and arrives at the other.
const ClientSend = "cs"
const ClientRecv = "cr"
const ServerSend = "ss"
const ServerRecv = "sr"

// Values of annotations that time a message on its way through a broker.
const MessageSend = "ms"
const MessageRecv = "mr"

// Values of annotations that time bytes on the wire, and pieces of requests and answers.
const WireSend = "ws"
const WireRecv = "wr"
const ClientSendFragment = "csf"
const ClientRecvFragment = "crf"
const ServerSendFragment = "ssf"
const ServerRecvFragment = "srf"

// Keys of binary annotations that name a component or the address of the other side.
const LocalComponent = "lc"
const ClientAddr = "ca"
const ServerAddr = "sa"
const MessageAddr = "ma"

// AnnotationType is the type of the value of a binary annotation. Numbers are big-endian.
type AnnotationType int32

// The values of AnnotationType.
const (
	AnnotationTypeBool   AnnotationType = 0
	AnnotationTypeBytes  AnnotationType = 1
	AnnotationTypeI16    AnnotationType = 2
	AnnotationTypeI32    AnnotationType = 3
	AnnotationTypeI64    AnnotationType = 4
	AnnotationTypeDouble AnnotationType = 5
	AnnotationTypeString AnnotationType = 6
)

// Endpoint is a service on a host.
type Endpoint struct {
	// The address's four bytes, the first of them the most significant.
	Ipv4 int32
	// Without a sign on the network: add 65536 to a negative one.
	Port        int16
	ServiceName string
	// 16 bytes.
	Ipv6 []byte
}

// Read replaces x by the struct that in holds.
func (x *Endpoint) Read(ctx context.Context, in thrift.TProtocol) error {
	*x = Endpoint{}
	r := thriftio.NewReader(ctx, in)
	for r.Next() {
		switch r.ID() {
		case 1:
			thriftio.Read(r, &x.Ipv4)
		case 2:
			thriftio.Read(r, &x.Port)
		case 3:
			thriftio.Read(r, &x.ServiceName)
		case 4:
			thriftio.Read(r, &x.Ipv6)
		default:
			r.Skip()
		}
	}
	return r.End()
}

// Write writes x.
func (x *Endpoint) Write(ctx context.Context, out thrift.TProtocol) error {
	w := thriftio.NewWriter(ctx, out, "Endpoint")
	thriftio.Write(w, 1, "ipv4", x.Ipv4)
	thriftio.Write(w, 2, "port", x.Port)
	thriftio.Write(w, 3, "service_name", x.ServiceName)
	if x.Ipv6 != nil {
		thriftio.Write(w, 4, "ipv6", x.Ipv6)
	}
	return w.End()
}

// Annotation is something that happened at a time.
type Annotation struct {
	// Microseconds since the epoch.
	Timestamp int64
	Value     string
	Host      *Endpoint
}

// Read replaces x by the struct that in holds.
func (x *Annotation) Read(ctx context.Context, in thrift.TProtocol) error {
	*x = Annotation{}
	r := thriftio.NewReader(ctx, in)
	for r.Next() {
		switch r.ID() {
		case 1:
			thriftio.Read(r, &x.Timestamp)
		case 2:
			thriftio.Read(r, &x.Value)
		case 3:
			thriftio.ReadOptionalStruct(r, &x.Host)
		default:
			r.Skip()
		}
	}
	return r.End()
}

// Write writes x.
func (x *Annotation) Write(ctx context.Context, out thrift.TProtocol) error {
	w := thriftio.NewWriter(ctx, out, "Annotation")
	thriftio.Write(w, 1, "timestamp", x.Timestamp)
	thriftio.Write(w, 2, "value", x.Value)
	if x.Host != nil {
		thriftio.WriteStruct(w, 3, "host", x.Host)
	}
	return w.End()
}

// BinaryAnnotation is a tag.
type BinaryAnnotation struct {
	Key            string
	Value          []byte
	AnnotationType AnnotationType
	Host           *Endpoint
}

// Read replaces x by the struct that in holds.
func (x *BinaryAnnotation) Read(ctx context.Context, in thrift.TProtocol) error {
	*x = BinaryAnnotation{}
	r := thriftio.NewReader(ctx, in)
	for r.Next() {
		switch r.ID() {
		case 1:
			thriftio.Read(r, &x.Key)
		case 2:
			thriftio.Read(r, &x.Value)
		case 3:
			thriftio.ReadEnum(r, &x.AnnotationType)
		case 4:
			thriftio.ReadOptionalStruct(r, &x.Host)
		default:
			r.Skip()
		}
	}
	return r.End()
}

// Write writes x.
func (x *BinaryAnnotation) Write(ctx context.Context, out thrift.TProtocol) error {
	w := thriftio.NewWriter(ctx, out, "BinaryAnnotation")
	thriftio.Write(w, 1, "key", x.Key)
	thriftio.Write(w, 2, "value", x.Value)
	thriftio.Write(w, 3, "annotation_type", int32(x.AnnotationType))
	if x.Host != nil {
		thriftio.WriteStruct(w, 4, "host", x.Host)
	}
	return w.End()
}

// Span is one side's view of a call, or of work within a service. Both sides of a call share the id.
type Span struct {
	// The less significant half.
	TraceID           int64
	Name              string
	ID                int64
	ParentID          *int64
	Annotations       []Annotation
	BinaryAnnotations []BinaryAnnotation
	Debug             bool
	// Microseconds since the epoch.
	Timestamp *int64
	// Microseconds.
	Duration    *int64
	TraceIDHigh *int64
}

// Read replaces x by the struct that in holds.
func (x *Span) Read(ctx context.Context, in thrift.TProtocol) error {
	*x = Span{}
	r := thriftio.NewReader(ctx, in)
	for r.Next() {
		switch r.ID() {
		case 1:
			thriftio.Read(r, &x.TraceID)
		case 3:
			thriftio.Read(r, &x.Name)
		case 4:
			thriftio.Read(r, &x.ID)
		case 5:
			thriftio.ReadOptional(r, &x.ParentID)
		case 6:
			thriftio.ReadStructs(r, &x.Annotations)
		case 8:
			thriftio.ReadStructs(r, &x.BinaryAnnotations)
		case 9:
			thriftio.Read(r, &x.Debug)
		case 10:
			thriftio.ReadOptional(r, &x.Timestamp)
		case 11:
			thriftio.ReadOptional(r, &x.Duration)
		case 12:
			thriftio.ReadOptional(r, &x.TraceIDHigh)
		default:
			r.Skip()
		}
	}
	return r.End()
}

// Write writes x.
func (x *Span) Write(ctx context.Context, out thrift.TProtocol) error {
	w := thriftio.NewWriter(ctx, out, "Span")
	thriftio.Write(w, 1, "trace_id", x.TraceID)
	thriftio.Write(w, 3, "name", x.Name)
	thriftio.Write(w, 4, "id", x.ID)
	thriftio.WriteOptional(w, 5, "parent_id", x.ParentID)
	thriftio.WriteStructs(w, 6, "annotations", x.Annotations)
	thriftio.WriteStructs(w, 8, "binary_annotations", x.BinaryAnnotations)
	if x.Debug {
		thriftio.Write(w, 9, "debug", x.Debug)
	}
	thriftio.WriteOptional(w, 10, "timestamp", x.Timestamp)
	thriftio.WriteOptional(w, 11, "duration", x.Duration)
	thriftio.WriteOptional(w, 12, "trace_id_high", x.TraceIDHigh)
	return w.End()
}
