package wire_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNames(t *testing.T) {
	for name, want := range map[string][]string{
		"tracing.api_v2.CollectorService":    {"tracing.api_v2.CollectorService", "jaeger.api_v2.CollectorService"},
		"tracing.storage.v2.TraceReader":     {"tracing.storage.v2.TraceReader", "jaeger.storage.v2.TraceReader"},
		"tracing.streaming.StreamingQuerier": {"tracing.streaming.StreamingQuerier", "tempopb.StreamingQuerier"},
		"zipkin.proto3.SpanService":          {"zipkin.proto3.SpanService"},
		"tracings.Service":                   {"tracings.Service"},
	} {
		if got := wire.Names(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

type collector struct {
	api_v2.UnimplementedCollectorServiceServer
	services chan string
}

func (c *collector) PostSpans(_ context.Context, r *api_v2.PostSpansRequest) (*api_v2.PostSpansResponse, error) {
	c.services <- r.Batch.Process.ServiceName
	return &api_v2.PostSpansResponse{}, nil
}

// serve runs a server with our services under all of their names.
func serve(t *testing.T, c *collector) *grpc.ClientConn {
	t.Helper()
	set := pipeline.Settings{
		Logger:  zap.NewNop(),
		Metrics: prometheus.NewRegistry(),
		Env:     pipeline.SystemEnv(),
		Budget:  pipeline.NewBudget(64 << 20),
		Report:  func(err error) { t.Errorf("reported: %v", err) },
	}
	s, err := server.NewGRPC(set, "protocols.grpc", server.DefaultGRPCConfig("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	wire.Register(s, &api_v2.CollectorService_ServiceDesc, c)
	// Reflection also describes services without handlers.
	wire.Register(s, &grpc.ServiceDesc{ServiceName: "tracing.api_v2.SamplingManager", HandlerType: (*any)(nil),
		Metadata: api_v2.File_tracing_api_v2_sampling_proto.Path()}, c)
	s.AddDescriptors(wire.Originals())
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(s.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return conn
}

// One handler answers under both names, and the health service knows both.
func TestRegister(t *testing.T) {
	c := &collector{services: make(chan string, 1)}
	conn := serve(t, c)
	for _, name := range []string{"tracing.api_v2.CollectorService", "jaeger.api_v2.CollectorService"} {
		req := &api_v2.PostSpansRequest{Batch: &api_v2.Batch{Process: &api_v2.Process{ServiceName: name}}}
		if err := conn.Invoke(t.Context(), "/"+name+"/PostSpans", req, &api_v2.PostSpansResponse{}); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := <-c.services; got != name {
			t.Errorf("handler got %q, want %q", got, name)
		}
		h, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
		if err != nil || h.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%s: health %v, %v", name, h, err)
		}
	}
	err := conn.Invoke(t.Context(), "/other.api_v2.CollectorService/PostSpans", &api_v2.PostSpansRequest{}, &api_v2.PostSpansResponse{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("unknown service name: %v", err)
	}
}

// ask sends one request to the reflection service. The messages of its two versions have the same
// encoding.
func ask(t *testing.T, conn *grpc.ClientConn, version string, r *reflectionRequest) *reflectionpb.ServerReflectionResponse {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	method := "/grpc.reflection." + version + ".ServerReflection/ServerReflectionInfo"
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(r); err != nil {
		t.Fatal(err)
	}
	answer := &reflectionpb.ServerReflectionResponse{}
	if err := stream.RecvMsg(answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

type reflectionRequest = reflectionpb.ServerReflectionRequest

func bySymbol(name string) *reflectionRequest {
	return &reflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: name}}
}

func byPath(path string) *reflectionRequest {
	return &reflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileByFilename{FileByFilename: path}}
}

// find requests the declaration of name like a client without other knowledge: the response must
// contain everything that it refers to.
func find(t *testing.T, conn *grpc.ClientConn, name string) protoreflect.Descriptor {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	answer := ask(t, conn, "v1", bySymbol(name))
	for _, b := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
		f := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(b, f); err != nil {
			t.Fatal(err)
		}
		set.File = append(set.File, f)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatalf("%s: %v, %v", name, err, answer)
	}
	d, err := files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		t.Fatalf("%s: %v, %v", name, err, answer)
	}
	return d
}

func TestReflectionLists(t *testing.T) {
	conn := serve(t, &collector{})
	var names []string
	answer := ask(t, conn, "v1", &reflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.Name)
		if _, ok := find(t, conn, s.Name).(protoreflect.ServiceDescriptor); !ok {
			t.Errorf("%s is listed but is not a service", s.Name)
		}
	}
	want := []string{"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection",
		"jaeger.api_v2.CollectorService", "jaeger.api_v2.SamplingManager", "tracing.api_v2.CollectorService",
		"tracing.api_v2.SamplingManager"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q\nwant %q", names, want)
	}
}

// A client that uses only reflection can call the service by either name.
func TestReflectionDescribesBothNames(t *testing.T) {
	c := &collector{services: make(chan string, 1)}
	conn := serve(t, c)
	for _, pkg := range []string{"tracing.api_v2", "jaeger.api_v2"} {
		post := find(t, conn, pkg+".CollectorService").(protoreflect.ServiceDescriptor).Methods().ByName("PostSpans")
		types := fmt.Sprintf("%s → %s", post.Input().FullName(), post.Output().FullName())
		if want := pkg + ".PostSpansRequest → " + pkg + ".PostSpansResponse"; types != want {
			t.Errorf("%s, want %s", types, want)
		}
		req := dynamicpb.NewMessage(post.Input())
		batch := req.Mutable(post.Input().Fields().ByName("batch")).Message()
		process := batch.Mutable(batch.Descriptor().Fields().ByName("process")).Message()
		process.Set(process.Descriptor().Fields().ByName("service_name"), protoreflect.ValueOfString(pkg))
		if err := conn.Invoke(t.Context(), "/"+pkg+".CollectorService/PostSpans", req, dynamicpb.NewMessage(post.Output())); err != nil {
			t.Errorf("%s: %v", pkg, err)
		} else if got := <-c.services; got != pkg {
			t.Errorf("%s: handler got %q", pkg, got)
		}
		for _, name := range []string{
			".Span", ".Span.references", ".Trace.ProcessMapping", ".ValueType", ".SamplingManager", ".PerOperationSamplingStrategies",
		} {
			find(t, conn, pkg+name)
		}
	}
}

// Reflection describes the methods and messages of every service, including OTLP, under both names.
func TestReflectionDescribesEveryService(t *testing.T) {
	conn := serve(t, &collector{})
	for service, want := range map[string]string{
		"api_v2.QueryService":                  "GetTrace ArchiveTrace FindTraces GetServices GetOperations GetDependencies",
		"api_v2.metrics.MetricsQueryService":   "GetMinStepDuration GetLatencies GetCallRates GetErrorRates",
		"api_v3.QueryService":                  "GetTrace FindTraces GetServices GetOperations GetDependencies FindTraceSummaries",
		"storage.v1.SpanWriterPlugin":          "WriteSpan Close",
		"storage.v1.StreamingSpanWriterPlugin": "WriteSpanStream",
		"storage.v1.SpanReaderPlugin":          "GetTrace GetServices GetOperations FindTraces FindTraceIDs",
		"storage.v1.ArchiveSpanWriterPlugin":   "WriteArchiveSpan",
		"storage.v1.ArchiveSpanReaderPlugin":   "GetArchiveTrace",
		"storage.v1.DependenciesReaderPlugin":  "GetDependencies",
		"storage.v1.PluginCapabilities":        "Capabilities",
		"storage.v2.TraceReader":               "GetTraces GetServices GetOperations FindTraces FindTraceIDs FindTraceSummaries",
		"storage.v2.DependencyReader":          "GetDependencies",
		"storage.v2.Capabilities":              "GetCapabilities",
		"streaming.StreamingQuerier": "Search SearchTags SearchTagsV2 SearchTagValues SearchTagValuesV2 " +
			"MetricsQueryRange MetricsQueryInstant",
	} {
		for _, name := range wire.Names("tracing." + service) {
			var methods []string
			all := find(t, conn, name).(protoreflect.ServiceDescriptor).Methods()
			for i := range all.Len() {
				methods = append(methods, string(all.Get(i).Name()))
			}
			if got := strings.Join(methods, " "); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
	traces := find(t, conn, "jaeger.storage.v2.TraceReader").(protoreflect.ServiceDescriptor).Methods().ByName("GetTraces").Output()
	if traces.FullName() != "opentelemetry.proto.trace.v1.TracesData" {
		t.Errorf("traces are sent as %s", traces.FullName())
	}
}

// Both versions of reflection respond, and unknown names are not found.
func TestReflectionOfOtherThings(t *testing.T) {
	conn := serve(t, &collector{})
	for _, version := range []string{"v1", "v1alpha"} {
		for r, files := range map[*reflectionRequest]int{
			bySymbol("jaeger.api_v2.Span"):           3, // the file and its two imports
			bySymbol("google.protobuf.Timestamp"):    1,
			byPath("tracing/api_v2/collector.proto"): 4,
			byPath("jaeger/api_v2/collector.proto"):  4,
			byPath("tempopb/streaming.proto"):        2,
			byPath("google/protobuf/duration.proto"): 1,
		} {
			a := ask(t, conn, version, r)
			if got := len(a.GetFileDescriptorResponse().GetFileDescriptorProto()); got != files {
				t.Errorf("%s: %v: %d files, want %d: %v", version, r, got, files, a.GetErrorResponse())
			}
		}
		for _, r := range []*reflectionRequest{
			bySymbol("jaeger.api_v2.Nothing"), bySymbol("unknown.Name"), byPath("jaeger/x.proto"), byPath("x.proto"),
		} {
			if a := ask(t, conn, version, r); a.GetErrorResponse().GetErrorCode() != int32(codes.NotFound) {
				t.Errorf("%s: %v: %v", version, r, a)
			}
		}
	}
}

// Every file has a copy that differs only in names.
func TestOriginalsAreCopies(t *testing.T) {
	originals, files := wire.Originals(), 0
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if !strings.HasPrefix(f.Path(), "tracing/") {
			return true
		}
		files++
		path := strings.NewReplacer("tracing/streaming/", "tempopb/", "tracing/", "jaeger/").Replace(f.Path())
		c, err := originals.FindFileByPath(path)
		if err != nil {
			t.Errorf("%s: %v", f.Path(), err)
			return true
		}
		got := strings.NewReplacer("jaeger.", "tracing.", "jaeger/", "tracing/", "tempopb.", "tracing.streaming.",
			"tempopb/", "tracing/streaming/", `"tempopb"`, `"tracing.streaming"`).Replace(protodesc.ToFileDescriptorProto(c).String())
		if want := protodesc.ToFileDescriptorProto(f).String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		return true
	})
	if files == 0 {
		t.Error("no files are registered")
	}
}
