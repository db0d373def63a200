package remotestorage

import (
	"bytes"
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/internal/translate/remotestore"
	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/internal/wire/storage_v1"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// v1 serves a store with remote storage v1 (Jaeger's model).
type v1 struct {
	storage_v1.UnimplementedSpanReaderPluginServer
	storage_v1.UnimplementedDependenciesReaderPluginServer
	storage_v1.UnimplementedPluginCapabilitiesServer
	storage_v1.UnimplementedArchiveSpanReaderPluginServer
	*readers
	writers *writers
	store   Store
	archive Archive // nil if there is none

	toStore, toArchive pipeline.Consumer // write to them and count the spans
}

func registerV1(srv *server.GRPC, r *readers, w *writers, store Store, archive Archive) {
	s := &v1{readers: r, writers: w, store: store, archive: archive, toStore: w.set.Counted(store)}
	if archive != nil {
		s.toArchive = w.set.Counted(archive)
	}
	wire.Register(srv, s.writerDesc(), s)
	wire.Register(srv, &grpc.ServiceDesc{
		ServiceName: storage_v1.StreamingSpanWriterPlugin_ServiceDesc.ServiceName,
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{{StreamName: "WriteSpanStream", Handler: s.writeSpanStream, ClientStreams: true}},
		Metadata:    storage_v1.StreamingSpanWriterPlugin_ServiceDesc.Metadata,
	}, s)
	wire.Register(srv, &grpc.ServiceDesc{
		ServiceName: storage_v1.ArchiveSpanWriterPlugin_ServiceDesc.ServiceName,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "WriteArchiveSpan", Handler: s.writeArchiveSpan}},
		Metadata:    storage_v1.ArchiveSpanWriterPlugin_ServiceDesc.Metadata,
	}, s)
	wire.Register(srv, &storage_v1.SpanReaderPlugin_ServiceDesc, s)
	wire.Register(srv, &storage_v1.ArchiveSpanReaderPlugin_ServiceDesc, s)
	wire.Register(srv, &storage_v1.DependenciesReaderPlugin_ServiceDesc, s)
	wire.Register(srv, &storage_v1.PluginCapabilities_ServiceDesc, s)
}

var errNotImplemented = status.Error(codes.Unimplemented, "not implemented")

// Capabilities returns the capabilities of the server.
func (s *v1) Capabilities(context.Context, *storage_v1.CapabilitiesRequest) (*storage_v1.CapabilitiesResponse, error) {
	has := s.archive != nil
	return &storage_v1.CapabilitiesResponse{ArchiveSpanReader: has, ArchiveSpanWriter: has, StreamingSpanWriter: true}, nil
}

// GetTrace sends a trace.
func (s *v1) GetTrace(req *storage_v1.GetTraceRequest, stream grpc.ServerStreamingServer[storage_v1.SpansResponseChunk]) error {
	return s.trace(s.store, req, stream)
}

// GetArchiveTrace sends a trace of the archive.
func (s *v1) GetArchiveTrace(req *storage_v1.GetTraceRequest, stream grpc.ServerStreamingServer[storage_v1.SpansResponseChunk]) error {
	if s.archive == nil {
		return errNotImplemented
	}
	return s.trace(s.archive, req, stream)
}

func (s *v1) trace(store tracestore.Reader, req *storage_v1.GetTraceRequest, stream grpc.ServerStream) error {
	id, err := traceID(req.GetTraceId())
	if err != nil {
		return err
	}
	return s.read(stream.Context(), func(ctx context.Context, tenant string) error {
		found := false
		refs := []tracestore.TraceRef{{ID: id}}
		err := traces(ctx, store.Traces(ctx, tenant, refs), stream.SetTrailer, func(b *otlpdata.Batch) error {
			found = true
			return s.send(stream, b)
		})
		if err == nil && !found {
			return status.Error(codes.NotFound, "trace not found")
		}
		return err
	})
}

// traceID parses an id. A 64-bit id may have eight bytes.
func traceID(b []byte) (id otlpdata.TraceID, err error) {
	switch len(b) {
	case len(id):
		return otlpdata.TraceID(b), nil
	case len(id) / 2:
		copy(id[len(id)/2:], b)
		return id, nil
	}
	return id, status.Error(codes.InvalidArgument, "invalid length for TraceID")
}

// FindTraces sends the traces that match a query, newest first.
func (s *v1) FindTraces(req *storage_v1.FindTracesRequest, stream grpc.ServerStreamingServer[storage_v1.SpansResponseChunk]) error {
	return s.read(stream.Context(), func(ctx context.Context, tenant string) error {
		q, err := queryV1(tenant, req.GetQuery())
		if err != nil {
			return err
		}
		_, err = s.find(ctx, s.store, q, tracestore.WantFull, stream.SetTrailer,
			func(r *tracestore.Result) error { return s.send(stream, r.Spans) })
		return err
	})
}

// spansPerChunk is the maximum number of spans in one message of a response.
const spansPerChunk = 1000

// send sends a trace or a piece of it. Messages share no memory, because gRPC retains them until
// they are sent.
func (s *v1) send(stream grpc.ServerStream, b *otlpdata.Batch) error {
	chunks := native.NewChunks(native.ChunkLimits{Spans: spansPerChunk, Bytes: s.chunk}, func(chunk []byte) error {
		own := server.Raw(bytes.Clone(chunk))
		return stream.SendMsg(&own)
	})
	if err := b.Walk(chunks); err != nil {
		return err
	}
	return chunks.Finish()
}

// FindTraceIDs returns the ids of the traces that match a query, newest first.
func (s *v1) FindTraceIDs(ctx context.Context, req *storage_v1.FindTraceIDsRequest) (*storage_v1.FindTraceIDsResponse, error) {
	resp := &storage_v1.FindTraceIDsResponse{}
	err := s.read(ctx, func(inner context.Context, tenant string) error {
		q, err := queryV1(tenant, req.GetQuery())
		if err != nil {
			return err
		}
		_, err = s.find(inner, s.store, q, tracestore.WantIDs, unaryTrailer(ctx), func(r *tracestore.Result) error {
			resp.TraceIds = append(resp.TraceIds, r.ID[:])
			return nil
		})
		return err
	})
	return resp, err
}

// GetServices lists the services.
func (s *v1) GetServices(ctx context.Context, _ *storage_v1.GetServicesRequest) (*storage_v1.GetServicesResponse, error) {
	resp := &storage_v1.GetServicesResponse{}
	err := s.read(ctx, func(inner context.Context, tenant string) error {
		names, more, err := s.store.Services(inner, tenant, tracestore.NameQuery{})
		err = noteMissing(ctx, len(names), more, err)
		resp.Services = remotestore.PutNames(resp, names)
		return err
	})
	return resp, err
}

// GetOperations lists the operations of a service. It also lists their names, for clients without
// kinds.
func (s *v1) GetOperations(ctx context.Context, req *storage_v1.GetOperationsRequest) (*storage_v1.GetOperationsResponse, error) {
	resp := &storage_v1.GetOperationsResponse{}
	err := s.read(ctx, func(inner context.Context, tenant string) error {
		service := remotestore.Name(req, req.GetService())
		ops, more, err := s.store.Operations(inner, tenant, service, req.GetSpanKind(), tracestore.NameQuery{})
		err = noteMissing(ctx, len(ops), more, err)
		for _, op := range ops {
			resp.Operations = append(resp.Operations, &storage_v1.Operation{Name: text(op.Name), SpanKind: op.Kind})
			resp.OperationNames = append(resp.OperationNames, text(op.Name))
		}
		resp.OperationNames = slices.Compact(resp.OperationNames)
		return err
	})
	return resp, err
}

// GetDependencies counts the calls between services.
func (s *v1) GetDependencies(ctx context.Context, req *storage_v1.GetDependenciesRequest) (*storage_v1.GetDependenciesResponse, error) {
	resp := &storage_v1.GetDependenciesResponse{}
	err := s.dependencies(ctx, s.store, req, func(g tracestore.Graph) {
		for _, l := range links(g.Edges) {
			resp.Dependencies = append(resp.Dependencies, &api_v2.DependencyLink{
				Parent: text(l.Parent), Child: text(l.Child), CallCount: l.Calls})
		}
		remotestore.PutEdges(resp, exactEdges(g.Edges))
	})
	return resp, err
}
