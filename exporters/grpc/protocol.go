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

// traceReader reads traces in one version of the protocol.
type traceReader interface {
	// trace calls each with the pieces of a trace, as ExportTraceServiceRequests. It does not call
	// each if the trace does not exist. incomplete describes the spans that cannot be read,
	// according to the server, or is "".
	trace(ctx context.Context, ref tracestore.TraceRef, each func(otlp []byte) error) (incomplete string, err error)
	// find calls each with the pieces of the traces that match the query. incomplete is the reason
	// why there may be further traces, according to the server, or "".
	find(ctx context.Context, q *remoteQuery, each func(otlp []byte) error) (incomplete string, err error)
}

// catalogReader reads everything else. Lists may be unsorted and contain duplicates.
type catalogReader interface {
	// services and operations return all names. cut reports whether the server says that it left
	// out some.
	services(ctx context.Context) (names []string, cut bool, err error)
	operations(ctx context.Context, service, kind string) (ops []tracestore.Operation, cut bool, err error)
	// dependencies returns the calls between services. incomplete is the reason why calls are
	// missing, according to the server, or "".
	dependencies(ctx context.Context, from, to time.Time) (edges []tracestore.Edge, incomplete string, err error)
}

// protocolV1 and protocolV2 implement the versions of the protocol.
type (
	protocolV1 struct {
		originalNames
		archive bool
	}
	protocolV2 struct{ originalNames }
)

func (w protocolV2) trace(ctx context.Context, ref tracestore.TraceRef, each func([]byte) error) (string, error) {
	req := &storage_v2.GetTracesRequest{Query: []*storage_v2.GetTraceParams{
		{TraceId: ref.ID[:], StartTime: timestamp(ref.From), EndTime: timestamp(ref.To)}}}
	trailer, err := w.receive(ctx, storage_v2.TraceReader_GetTraces_FullMethodName, req, each)
	return incompleteTrace(trailer, err)
}

// incompleteTrace returns what a server says about the damaged parts of a trace.
func incompleteTrace(trailer metadata.MD, err error) (string, error) {
	if status.Code(err) == codes.DataLoss {
		return status.Convert(err).Message(), nil
	}
	return incomplete(trailer), err
}

func (w protocolV2) find(ctx context.Context, q *remoteQuery, each func([]byte) error) (string, error) {
	trailer, err := w.receive(ctx, storage_v2.TraceReader_FindTraces_FullMethodName, &storage_v2.FindTracesRequest{Query: q.v2()}, each)
	return incomplete(trailer), err
}

func (w protocolV1) trace(ctx context.Context, ref tracestore.TraceRef, each func([]byte) error) (string, error) {
	method := storage_v1.SpanReaderPlugin_GetTrace_FullMethodName
	if w.archive {
		method = storage_v1.ArchiveSpanReaderPlugin_GetArchiveTrace_FullMethodName
	}
	trailer, err := w.receive(ctx, method, &storage_v1.GetTraceRequest{TraceId: ref.ID[:]}, translated(each))
	if isNotFound(err) {
		return "", nil
	}
	return incompleteTrace(trailer, err)
}

func (w protocolV1) find(ctx context.Context, q *remoteQuery, each func([]byte) error) (string, error) {
	trailer, err := w.receive(ctx, storage_v1.SpanReaderPlugin_FindTraces_FullMethodName, &storage_v1.FindTracesRequest{Query: q.v1()},
		translated(each))
	if isNotFound(err) {
		return "", nil
	}
	return incomplete(trailer), err
}

// translated converts SpansResponseChunks to OTLP for each.
func translated(each func([]byte) error) func([]byte) error {
	return func(chunk []byte) error {
		otlp, err := native.FromSpans(0, chunk)
		if err != nil {
			return err
		}
		return each(otlp)
	}
}

// isNotFound reports whether err means that the trace does not exist. Some servers do not use the
// code NotFound.
func isNotFound(err error) bool {
	s, ok := status.FromError(err)
	return ok && err != nil && (s.Code() == codes.NotFound || strings.HasSuffix(s.Message(), "trace not found"))
}

func incomplete(trailer metadata.MD) string {
	return strings.Join(trailer.Get(remotestore.IncompleteTrailer), "; ")
}

func (w protocolV2) services(ctx context.Context) (names []string, cut bool, err error) {
	var trailer metadata.MD
	resp, err := storage_v2.NewTraceReaderClient(w).GetServices(ctx, &storage_v2.GetServicesRequest{}, grpc.Trailer(&trailer))
	if err != nil {
		return nil, false, err
	}
	return remotestore.Names(resp, resp.GetServices()), incomplete(trailer) != "", nil
}

func (w protocolV1) services(ctx context.Context) (names []string, cut bool, err error) {
	var trailer metadata.MD
	resp, err := storage_v1.NewSpanReaderPluginClient(w).GetServices(ctx, &storage_v1.GetServicesRequest{}, grpc.Trailer(&trailer))
	if err != nil {
		return nil, false, err
	}
	return remotestore.Names(resp, resp.GetServices()), incomplete(trailer) != "", nil
}

func (w protocolV2) operations(ctx context.Context, service, kind string) (ops []tracestore.Operation, cut bool, err error) {
	var trailer metadata.MD
	req := &storage_v2.GetOperationsRequest{SpanKind: kind}
	req.Service = remotestore.PutName(req, service)
	resp, err := storage_v2.NewTraceReaderClient(w).GetOperations(ctx, req, grpc.Trailer(&trailer))
	if err != nil {
		return nil, false, err
	}
	for _, op := range resp.GetOperations() {
		ops = append(ops, tracestore.Operation{Name: op.GetName(), Kind: op.GetSpanKind()})
	}
	return ops, incomplete(trailer) != "", nil
}

func (w protocolV1) operations(ctx context.Context, service, kind string) (ops []tracestore.Operation, cut bool, err error) {
	var trailer metadata.MD
	req := &storage_v1.GetOperationsRequest{SpanKind: kind}
	req.Service = remotestore.PutName(req, service)
	resp, err := storage_v1.NewSpanReaderPluginClient(w).GetOperations(ctx, req, grpc.Trailer(&trailer))
	if err != nil {
		return nil, false, err
	}
	for _, op := range resp.GetOperations() {
		ops = append(ops, tracestore.Operation{Name: op.GetName(), Kind: op.GetSpanKind()})
	}
	if len(ops) == 0 { // an old server without kinds
		for _, name := range resp.GetOperationNames() {
			ops = append(ops, tracestore.Operation{Name: name, Kind: kind})
		}
	}
	return ops, incomplete(trailer) != "", nil
}

func (w protocolV2) dependencies(ctx context.Context, from, to time.Time) ([]tracestore.Edge, string, error) {
	var trailer metadata.MD
	resp, err := storage_v2.NewDependencyReaderClient(w).GetDependencies(ctx,
		&storage_v2.GetDependenciesRequest{StartTime: earliest(from), EndTime: latest(to)}, grpc.Trailer(&trailer))
	if err != nil {
		return nil, "", err
	}
	return edgesOf(resp, resp.GetDependencies()), incomplete(trailer), nil
}

func (w protocolV1) dependencies(ctx context.Context, from, to time.Time) ([]tracestore.Edge, string, error) {
	var trailer metadata.MD
	resp, err := storage_v1.NewDependenciesReaderPluginClient(w).GetDependencies(ctx,
		&storage_v1.GetDependenciesRequest{StartTime: earliest(from), EndTime: latest(to)}, grpc.Trailer(&trailer))
	if err != nil {
		return nil, "", err
	}
	return edgesOf(resp, resp.GetDependencies()), incomplete(trailer), nil
}

// callCount is a message with the number of calls between two services.
type callCount interface {
	GetParent() string
	GetChild() string
	GetCallCount() uint64
}

// edgesOf returns the edges of a response. They have all fields if the server is this program,
// otherwise only the fields of the protocol.
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

// timestamp returns nil for a zero time, and for one that the protocol cannot represent.
func timestamp(t time.Time) *timestamppb.Timestamp {
	ts := timestamppb.New(t)
	if t.IsZero() || ts.CheckValid() != nil {
		return nil
	}
	return ts
}

// earliest returns a lower bound. It is never nil, because other servers interpret a missing bound
// as the year 1.
func earliest(t time.Time) *timestamppb.Timestamp {
	if ts := timestamp(t); ts != nil {
		return ts
	}
	return &timestamppb.Timestamp{}
}

// latest returns an upper bound. It is never nil, and not after a time that servers can represent
// in nanoseconds with 63 bits.
func latest(t time.Time) *timestamppb.Timestamp {
	if ts := timestamp(t); ts != nil {
		return ts
	}
	return timestamppb.New(time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC))
}
