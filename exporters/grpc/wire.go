package grpc

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/internal/translate/remotestore"
	"github.com/tracing-backend/tracing/internal/wire/storage_v1"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// spansReader reads spans in one version of the protocol.
type spansReader interface {
	// trace gives the pieces of a trace to each, as ExportTraceServiceRequests. A trace that does not exist has none.
	trace(ctx context.Context, ref tracestore.TraceRef, each func(otlp []byte) error) error
	// find gives the pieces of the traces to each that answer the question. incomplete says why there may be more than were found; "" where the
	// other side did not say so.
	find(ctx context.Context, q *question, each func(otlp []byte) error) (incomplete string, err error)
}

// lister reads everything else. Lists may be in any order and repeat.
type lister interface {
	services(ctx context.Context) ([]string, error)
	operations(ctx context.Context, service, kind string) ([]tracestore.Operation, error)
	// dependencies returns also where the other side said that they are not complete, and why; "" where it did not.
	dependencies(ctx context.Context, from, to time.Time) (edges []tracestore.Edge, incomplete string, err error)
}

// wireV1 and wireV2 are the versions.
type (
	wireV1 struct {
		field
		archive bool
	}
	wireV2 struct{ field }
)

func (w wireV2) trace(ctx context.Context, ref tracestore.TraceRef, each func([]byte) error) error {
	req := &storage_v2.GetTracesRequest{Query: []*storage_v2.GetTraceParams{
		{TraceId: ref.ID[:], StartTime: timestamp(ref.From), EndTime: timestamp(ref.To)}}}
	return w.receive(ctx, storage_v2.TraceReader_GetTraces_FullMethodName, req, each)
}

func (w wireV2) find(ctx context.Context, q *question, each func([]byte) error) (string, error) {
	var trailer metadata.MD
	err := w.receive(ctx, storage_v2.TraceReader_FindTraces_FullMethodName, &storage_v2.FindTracesRequest{Query: q.v2()}, each,
		grpc.Trailer(&trailer))
	return incomplete(trailer), err
}

func (w wireV1) trace(ctx context.Context, ref tracestore.TraceRef, each func([]byte) error) error {
	method := storage_v1.SpanReaderPlugin_GetTrace_FullMethodName
	if w.archive {
		method = storage_v1.ArchiveSpanReaderPlugin_GetArchiveTrace_FullMethodName
	}
	err := w.receive(ctx, method, &storage_v1.GetTraceRequest{TraceId: ref.ID[:]}, translated(each))
	if isNotFound(err) {
		return nil
	}
	return err
}

func (w wireV1) find(ctx context.Context, q *question, each func([]byte) error) (string, error) {
	var trailer metadata.MD
	err := w.receive(ctx, storage_v1.SpanReaderPlugin_FindTraces_FullMethodName, &storage_v1.FindTracesRequest{Query: q.v1()},
		translated(each), grpc.Trailer(&trailer))
	if isNotFound(err) {
		return "", nil
	}
	return incomplete(trailer), err
}

// translated gives SpansResponseChunks to each as OTLP.
func translated(each func([]byte) error) func([]byte) error {
	return func(chunk []byte) error {
		otlp, err := native.FromSpans(0, chunk)
		if err != nil {
			return err
		}
		return each(otlp)
	}
}

// isNotFound reports whether err says that there is no such trace. Not all servers have the code for it.
func isNotFound(err error) bool {
	s, ok := status.FromError(err)
	return ok && err != nil && (s.Code() == codes.NotFound || strings.HasSuffix(s.Message(), "trace not found"))
}

func incomplete(trailer metadata.MD) string {
	return strings.Join(trailer.Get(remotestore.IncompleteTrailer), "; ")
}

func (w wireV2) services(ctx context.Context) ([]string, error) {
	resp, err := storage_v2.NewTraceReaderClient(w).GetServices(ctx, &storage_v2.GetServicesRequest{})
	if err != nil {
		return nil, err
	}
	return remotestore.Names(resp, resp.GetServices()), nil
}

func (w wireV1) services(ctx context.Context) ([]string, error) {
	resp, err := storage_v1.NewSpanReaderPluginClient(w).GetServices(ctx, &storage_v1.GetServicesRequest{})
	if err != nil {
		return nil, err
	}
	return remotestore.Names(resp, resp.GetServices()), nil
}

func (w wireV2) operations(ctx context.Context, service, kind string) ([]tracestore.Operation, error) {
	req := &storage_v2.GetOperationsRequest{SpanKind: kind}
	req.Service = remotestore.PutName(req, service)
	resp, err := storage_v2.NewTraceReaderClient(w).GetOperations(ctx, req)
	if err != nil {
		return nil, err
	}
	var out []tracestore.Operation
	for _, op := range resp.GetOperations() {
		out = append(out, tracestore.Operation{Name: op.GetName(), Kind: op.GetSpanKind()})
	}
	return out, nil
}

func (w wireV1) operations(ctx context.Context, service, kind string) ([]tracestore.Operation, error) {
	req := &storage_v1.GetOperationsRequest{SpanKind: kind}
	req.Service = remotestore.PutName(req, service)
	resp, err := storage_v1.NewSpanReaderPluginClient(w).GetOperations(ctx, req)
	if err != nil {
		return nil, err
	}
	var out []tracestore.Operation
	for _, op := range resp.GetOperations() {
		out = append(out, tracestore.Operation{Name: op.GetName(), Kind: op.GetSpanKind()})
	}
	if len(out) == 0 { // an old server, which knows no kinds
		for _, name := range resp.GetOperationNames() {
			out = append(out, tracestore.Operation{Name: name, Kind: kind})
		}
	}
	return out, nil
}

func (w wireV2) dependencies(ctx context.Context, from, to time.Time) ([]tracestore.Edge, string, error) {
	var trailer metadata.MD
	resp, err := storage_v2.NewDependencyReaderClient(w).GetDependencies(ctx,
		&storage_v2.GetDependenciesRequest{StartTime: earliest(from), EndTime: latest(to)}, grpc.Trailer(&trailer))
	if err != nil {
		return nil, "", err
	}
	return edgesOf(resp, resp.GetDependencies()), incomplete(trailer), nil
}

func (w wireV1) dependencies(ctx context.Context, from, to time.Time) ([]tracestore.Edge, string, error) {
	var trailer metadata.MD
	resp, err := storage_v1.NewDependenciesReaderPluginClient(w).GetDependencies(ctx,
		&storage_v1.GetDependenciesRequest{StartTime: earliest(from), EndTime: latest(to)}, grpc.Trailer(&trailer))
	if err != nil {
		return nil, "", err
	}
	return edgesOf(resp, resp.GetDependencies()), incomplete(trailer), nil
}

// callCount is a message that says how often one service called another.
type callCount interface {
	GetParent() string
	GetChild() string
	GetCallCount() uint64
}

// edgesOf returns the edges of an answer: all that is known of them where a server like this one says it, else what the protocol has.
func edgesOf[C callCount](answer proto.Message, counts []C) (out []tracestore.Edge) {
	for _, e := range remotestore.Edges(answer) {
		out = append(out, tracestore.Edge(e))
	}
	if out != nil {
		return out
	}
	for _, c := range counts {
		out = append(out, tracestore.Edge{Parent: c.GetParent(), Child: c.GetChild(), Calls: c.GetCallCount()})
	}
	return out
}

// timestamp returns nil for a time that does not bound, and for one that the protocol cannot say.
func timestamp(t time.Time) *timestamppb.Timestamp {
	ts := timestamppb.New(t)
	if t.IsZero() || ts.CheckValid() != nil {
		return nil
	}
	return ts
}

// Bounds of all times that a span can have: servers of the field take a bound that is absent for the year 1.
func earliest(t time.Time) *timestamppb.Timestamp {
	if ts := timestamp(t); ts != nil {
		return ts
	}
	return &timestamppb.Timestamp{}
}

// The latest time is one that servers can also count in nanoseconds with 63 bits.
func latest(t time.Time) *timestamppb.Timestamp {
	if ts := timestamp(t); ts != nil {
		return ts
	}
	return timestamppb.New(time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC))
}
