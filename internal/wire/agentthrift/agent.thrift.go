// Code generated from agent.thrift by internal/wire/generate. DO NOT EDIT.

// Package agentthrift is generated from agent.thrift.
//
// What an agent takes in over UDP: one message in one datagram, without an answer.
package agentthrift

import (
	"context"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/tracing-backend/tracing/internal/wire/nativethrift"
	"github.com/tracing-backend/tracing/internal/wire/thriftio"
	"github.com/tracing-backend/tracing/internal/wire/zipkincore"
)

// MethodEmitZipkinBatch is the name of a method of the service Agent.
const MethodEmitZipkinBatch = "emitZipkinBatch"

// MethodEmitBatch is the name of a method of the service Agent.
const MethodEmitBatch = "emitBatch"

// EmitZipkinBatchArgs are the arguments of the method emitZipkinBatch.
// Spans in Zipkin's first model.
type EmitZipkinBatchArgs struct {
	Spans []zipkincore.Span
}

// Read replaces x by the struct that in holds.
func (x *EmitZipkinBatchArgs) Read(ctx context.Context, in thrift.TProtocol) error {
	*x = EmitZipkinBatchArgs{}
	r := thriftio.NewReader(ctx, in)
	for r.Next() {
		switch r.ID() {
		case 1:
			thriftio.ReadStructs(r, &x.Spans)
		default:
			r.Skip()
		}
	}
	return r.End()
}

// Write writes x.
func (x *EmitZipkinBatchArgs) Write(ctx context.Context, out thrift.TProtocol) error {
	w := thriftio.NewWriter(ctx, out, "emitZipkinBatch_args")
	thriftio.WriteStructs(w, 1, "spans", x.Spans)
	return w.End()
}

// EmitBatchArgs are the arguments of the method emitBatch.
// Spans in the native model.
type EmitBatchArgs struct {
	Batch nativethrift.Batch
}

// Read replaces x by the struct that in holds.
func (x *EmitBatchArgs) Read(ctx context.Context, in thrift.TProtocol) error {
	*x = EmitBatchArgs{}
	r := thriftio.NewReader(ctx, in)
	for r.Next() {
		switch r.ID() {
		case 1:
			thriftio.ReadStruct(r, &x.Batch)
		default:
			r.Skip()
		}
	}
	return r.End()
}

// Write writes x.
func (x *EmitBatchArgs) Write(ctx context.Context, out thrift.TProtocol) error {
	w := thriftio.NewWriter(ctx, out, "emitBatch_args")
	thriftio.WriteStruct(w, 1, "batch", &x.Batch)
	return w.End()
}
