// Code generated from native.thrift by internal/wire/generate. DO NOT EDIT.

// Package nativethrift is generated from native.thrift.
//
// The native model: what clients send to the agent and, over HTTP, to the collector.
package nativethrift

import (
	"context"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/tracing-backend/tracing/internal/wire/thriftio"
)

// TagType says which value field of a Tag counts. The numbers differ from those of the protobuf form.
type TagType int32

// The values of TagType.
const (
	TagTypeString TagType = 0
	TagTypeDouble TagType = 1
	TagTypeBool   TagType = 2
	TagTypeLong   TagType = 3
	TagTypeBinary TagType = 4
)

// SpanRefType says how a span depends on the one that it refers to.
type SpanRefType int32

// The values of SpanRefType.
const (
	SpanRefTypeChildOf     SpanRefType = 0
	SpanRefTypeFollowsFrom SpanRefType = 1
)

// Tag is a key with a typed value. A key may occur more than once.
type Tag struct {
	Key     string
	VType   TagType
	VStr    *string
	VDouble *float64
	VBool   *bool
	VLong   *int64
	VBinary []byte
}

// Read replaces x by the struct that in holds.
func (x *Tag) Read(ctx context.Context, in thrift.TProtocol) error {
	*x = Tag{}
	r := thriftio.NewReader(ctx, in)
	for r.Next() {
		switch r.ID() {
		case 1:
			thriftio.Read(r, &x.Key)
		case 2:
			thriftio.ReadEnum(r, &x.VType)
		case 3:
			thriftio.ReadOptional(r, &x.VStr)
		case 4:
			thriftio.ReadOptional(r, &x.VDouble)
		case 5:
			thriftio.ReadOptional(r, &x.VBool)
		case 6:
			thriftio.ReadOptional(r, &x.VLong)
		case 7:
			thriftio.Read(r, &x.VBinary)
		default:
			r.Skip()
		}
	}
	r.Require(1, "key")
	r.Require(2, "vType")
	return r.End()
}

// Write writes x.
func (x *Tag) Write(ctx context.Context, out thrift.TProtocol) error {
	w := thriftio.NewWriter(ctx, out, "Tag")
	thriftio.Write(w, 1, "key", x.Key)
	thriftio.Write(w, 2, "vType", int32(x.VType))
	thriftio.WriteOptional(w, 3, "vStr", x.VStr)
	thriftio.WriteOptional(w, 4, "vDouble", x.VDouble)
	thriftio.WriteOptional(w, 5, "vBool", x.VBool)
	thriftio.WriteOptional(w, 6, "vLong", x.VLong)
	if x.VBinary != nil {
		thriftio.Write(w, 7, "vBinary", x.VBinary)
	}
	return w.End()
}

// Log is something that happened during a span.
type Log struct {
	// Microseconds since the epoch.
	Timestamp int64
	Fields    []Tag
}

// Read replaces x by the struct that in holds.
func (x *Log) Read(ctx context.Context, in thrift.TProtocol) error {
	*x = Log{}
	r := thriftio.NewReader(ctx, in)
	for r.Next() {
		switch r.ID() {
		case 1:
			thriftio.Read(r, &x.Timestamp)
		case 2:
			thriftio.ReadStructs(r, &x.Fields)
		default:
			r.Skip()
		}
	}
	r.Require(1, "timestamp")
	r.Require(2, "fields")
	return r.End()
}

// Write writes x.
func (x *Log) Write(ctx context.Context, out thrift.TProtocol) error {
	w := thriftio.NewWriter(ctx, out, "Log")
	thriftio.Write(w, 1, "timestamp", x.Timestamp)
	thriftio.WriteStructs(w, 2, "fields", x.Fields)
	return w.End()
}

// SpanRef refers from a span to another one, of any trace.
type SpanRef struct {
	RefType     SpanRefType
	TraceIDLow  int64
	TraceIDHigh int64
	SpanID      int64
}

// Read replaces x by the struct that in holds.
func (x *SpanRef) Read(ctx context.Context, in thrift.TProtocol) error {
	*x = SpanRef{}
	r := thriftio.NewReader(ctx, in)
	for r.Next() {
		switch r.ID() {
		case 1:
			thriftio.ReadEnum(r, &x.RefType)
		case 2:
			thriftio.Read(r, &x.TraceIDLow)
		case 3:
			thriftio.Read(r, &x.TraceIDHigh)
		case 4:
			thriftio.Read(r, &x.SpanID)
		default:
			r.Skip()
		}
	}
	r.Require(1, "refType")
	r.Require(2, "traceIdLow")
	r.Require(3, "traceIdHigh")
	r.Require(4, "spanId")
	return r.End()
}

// Write writes x.
func (x *SpanRef) Write(ctx context.Context, out thrift.TProtocol) error {
	w := thriftio.NewWriter(ctx, out, "SpanRef")
	thriftio.Write(w, 1, "refType", int32(x.RefType))
	thriftio.Write(w, 2, "traceIdLow", x.TraceIDLow)
	thriftio.Write(w, 3, "traceIdHigh", x.TraceIDHigh)
	thriftio.Write(w, 4, "spanId", x.SpanID)
	return w.End()
}

// Span is a piece of work with a begin and a duration.
type Span struct {
	// The less significant half of the trace id.
	TraceIDLow int64
	// Zero for ids of 64 bits.
	TraceIDHigh int64
	SpanID      int64
	// Zero if there is none. The references need not name the parent again.
	ParentSpanID  int64
	OperationName string
	References    []SpanRef
	// Bits: 1 sampled, 2 debug.
	Flags int32
	// Microseconds since the epoch.
	StartTime int64
	// Microseconds.
	Duration int64
	Tags     []Tag
	Logs     []Log
}

// Read replaces x by the struct that in holds.
func (x *Span) Read(ctx context.Context, in thrift.TProtocol) error {
	*x = Span{}
	r := thriftio.NewReader(ctx, in)
	for r.Next() {
		switch r.ID() {
		case 1:
			thriftio.Read(r, &x.TraceIDLow)
		case 2:
			thriftio.Read(r, &x.TraceIDHigh)
		case 3:
			thriftio.Read(r, &x.SpanID)
		case 4:
			thriftio.Read(r, &x.ParentSpanID)
		case 5:
			thriftio.Read(r, &x.OperationName)
		case 6:
			thriftio.ReadStructs(r, &x.References)
		case 7:
			thriftio.Read(r, &x.Flags)
		case 8:
			thriftio.Read(r, &x.StartTime)
		case 9:
			thriftio.Read(r, &x.Duration)
		case 10:
			thriftio.ReadStructs(r, &x.Tags)
		case 11:
			thriftio.ReadStructs(r, &x.Logs)
		default:
			r.Skip()
		}
	}
	r.Require(1, "traceIdLow")
	r.Require(2, "traceIdHigh")
	r.Require(3, "spanId")
	r.Require(4, "parentSpanId")
	r.Require(5, "operationName")
	r.Require(7, "flags")
	r.Require(8, "startTime")
	r.Require(9, "duration")
	return r.End()
}

// Write writes x.
func (x *Span) Write(ctx context.Context, out thrift.TProtocol) error {
	w := thriftio.NewWriter(ctx, out, "Span")
	thriftio.Write(w, 1, "traceIdLow", x.TraceIDLow)
	thriftio.Write(w, 2, "traceIdHigh", x.TraceIDHigh)
	thriftio.Write(w, 3, "spanId", x.SpanID)
	thriftio.Write(w, 4, "parentSpanId", x.ParentSpanID)
	thriftio.Write(w, 5, "operationName", x.OperationName)
	if x.References != nil {
		thriftio.WriteStructs(w, 6, "references", x.References)
	}
	thriftio.Write(w, 7, "flags", x.Flags)
	thriftio.Write(w, 8, "startTime", x.StartTime)
	thriftio.Write(w, 9, "duration", x.Duration)
	if x.Tags != nil {
		thriftio.WriteStructs(w, 10, "tags", x.Tags)
	}
	if x.Logs != nil {
		thriftio.WriteStructs(w, 11, "logs", x.Logs)
	}
	return w.End()
}

// Process is what emitted the spans of a batch.
type Process struct {
	ServiceName string
	Tags        []Tag
}

// Read replaces x by the struct that in holds.
func (x *Process) Read(ctx context.Context, in thrift.TProtocol) error {
	*x = Process{}
	r := thriftio.NewReader(ctx, in)
	for r.Next() {
		switch r.ID() {
		case 1:
			thriftio.Read(r, &x.ServiceName)
		case 2:
			thriftio.ReadStructs(r, &x.Tags)
		default:
			r.Skip()
		}
	}
	r.Require(1, "serviceName")
	return r.End()
}

// Write writes x.
func (x *Process) Write(ctx context.Context, out thrift.TProtocol) error {
	w := thriftio.NewWriter(ctx, out, "Process")
	thriftio.Write(w, 1, "serviceName", x.ServiceName)
	if x.Tags != nil {
		thriftio.WriteStructs(w, 2, "tags", x.Tags)
	}
	return w.End()
}

// ClientStats counts spans that a client lost, from its start on.
type ClientStats struct {
	// The client's queue was full.
	FullQueueDroppedSpans int64
	// They alone were more than fits into a packet.
	TooLargeDroppedSpans int64
	// Sending them failed.
	FailedToEmitSpans int64
}

// Read replaces x by the struct that in holds.
func (x *ClientStats) Read(ctx context.Context, in thrift.TProtocol) error {
	*x = ClientStats{}
	r := thriftio.NewReader(ctx, in)
	for r.Next() {
		switch r.ID() {
		case 1:
			thriftio.Read(r, &x.FullQueueDroppedSpans)
		case 2:
			thriftio.Read(r, &x.TooLargeDroppedSpans)
		case 3:
			thriftio.Read(r, &x.FailedToEmitSpans)
		default:
			r.Skip()
		}
	}
	r.Require(1, "fullQueueDroppedSpans")
	r.Require(2, "tooLargeDroppedSpans")
	r.Require(3, "failedToEmitSpans")
	return r.End()
}

// Write writes x.
func (x *ClientStats) Write(ctx context.Context, out thrift.TProtocol) error {
	w := thriftio.NewWriter(ctx, out, "ClientStats")
	thriftio.Write(w, 1, "fullQueueDroppedSpans", x.FullQueueDroppedSpans)
	thriftio.Write(w, 2, "tooLargeDroppedSpans", x.TooLargeDroppedSpans)
	thriftio.Write(w, 3, "failedToEmitSpans", x.FailedToEmitSpans)
	return w.End()
}

// Batch is spans of one process.
type Batch struct {
	Process Process
	Spans   []Span
	// The number of the batch of its client, from 1.
	SeqNo *int64
	Stats *ClientStats
}

// Read replaces x by the struct that in holds.
func (x *Batch) Read(ctx context.Context, in thrift.TProtocol) error {
	*x = Batch{}
	r := thriftio.NewReader(ctx, in)
	for r.Next() {
		switch r.ID() {
		case 1:
			thriftio.ReadStruct(r, &x.Process)
		case 2:
			thriftio.ReadStructs(r, &x.Spans)
		case 3:
			thriftio.ReadOptional(r, &x.SeqNo)
		case 4:
			thriftio.ReadOptionalStruct(r, &x.Stats)
		default:
			r.Skip()
		}
	}
	r.Require(1, "process")
	r.Require(2, "spans")
	return r.End()
}

// Write writes x.
func (x *Batch) Write(ctx context.Context, out thrift.TProtocol) error {
	w := thriftio.NewWriter(ctx, out, "Batch")
	thriftio.WriteStruct(w, 1, "process", &x.Process)
	thriftio.WriteStructs(w, 2, "spans", x.Spans)
	thriftio.WriteOptional(w, 3, "seqNo", x.SeqNo)
	if x.Stats != nil {
		thriftio.WriteStruct(w, 4, "stats", x.Stats)
	}
	return w.End()
}
