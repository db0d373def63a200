package server_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tracing-backend/tracing/pipeline/server"
)

// descriptors returns a resolver with one file and one empty message.
func descriptors(t *testing.T, path, pkg, message string) protodesc.Resolver {
	t.Helper()
	files, err := protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: proto.String(path), Package: proto.String(pkg), MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String(message)}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Reflection finds added descriptors, but prefers the global registry.
func TestAddDescriptors(t *testing.T) {
	f := newFixture(t, 64<<20)
	s, err := server.NewGRPC(f.set, "protocols.grpc", server.DefaultGRPCConfig("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	s.AddDescriptors(descriptors(t, "a.proto", "test.a", "M"))
	s.AddDescriptors(descriptors(t, "b.proto", "test.b", "M"))
	s.AddDescriptors(descriptors(t, "grpc/health/v1/health.proto", "test.c", "M"))
	f.run(s)
	conn, err := grpc.NewClient(s.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	for path, pkg := range map[string]string{
		"a.proto": "test.a", "b.proto": "test.b", "grpc/health/v1/health.proto": "grpc.health.v1", "c.proto": "",
	} {
		r := &reflectionpb.ServerReflectionRequest_FileByFilename{FileByFilename: path}
		if got := describedPackage(t, conn, &reflectionpb.ServerReflectionRequest{MessageRequest: r}); got != pkg {
			t.Errorf("%s: package %q, want %q", path, got, pkg)
		}
	}
	for name, pkg := range map[string]string{
		"test.a.M": "test.a", "test.b.M": "test.b", "grpc.health.v1.Health": "grpc.health.v1", "test.d.M": "",
	} {
		r := &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: name}
		if got := describedPackage(t, conn, &reflectionpb.ServerReflectionRequest{MessageRequest: r}); got != pkg {
			t.Errorf("%s: package %q, want %q", name, got, pkg)
		}
	}
}

// describedPackage returns the package of the file in the reflection response, or "" if it is not
// found.
func describedPackage(t *testing.T, conn *grpc.ClientConn, r *reflectionpb.ServerReflectionRequest) string {
	t.Helper()
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(r); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if code := answer.GetErrorResponse().GetErrorCode(); code != 0 {
		if code != int32(codes.NotFound) {
			t.Errorf("code %d", code)
		}
		return ""
	}
	f := &descriptorpb.FileDescriptorProto{}
	if err := proto.Unmarshal(answer.GetFileDescriptorResponse().GetFileDescriptorProto()[0], f); err != nil {
		t.Fatal(err)
	}
	return f.GetPackage()
}
