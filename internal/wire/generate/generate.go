package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/pluginpb"
)

// serviceFiles are the files for which gRPC code is generated: their services are served or called
// by the program.
var serviceFiles = []string{
	"tracing/api_v2/collector.proto",
	"tracing/api_v2/metrics/metricsquery.proto",
	"tracing/api_v2/query.proto",
	"tracing/api_v2/sampling.proto",
	"tracing/api_v3/query_service.proto",
	"tracing/storage_v1/storage.proto",
	"tracing/storage_v2/capabilities.proto",
	"tracing/storage_v2/dependency_storage.proto",
	"tracing/storage_v2/trace_storage.proto",
	"tracing/streaming/streaming.proto",
}

// generate compiles the .proto files below in and runs both plugins on them. Each generated file
// goes into the folder below out that its go_package names.
func generate(in, out string) error {
	files, err := compile(in)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{Parameter: proto.String("module=" + wirePackage)}
	seen := map[string]bool{}
	for _, f := range files {
		request.FileToGenerate = append(request.FileToGenerate, f.Path())
		appendFile(request, f, seen)
	}
	if err := runPlugin("protoc-gen-go", request, out); err != nil {
		return fmt.Errorf("protoc-gen-go: %w", err)
	}
	request.FileToGenerate = slices.DeleteFunc(request.FileToGenerate, func(name string) bool {
		return !slices.Contains(serviceFiles, name)
	})
	if err := runPlugin("protoc-gen-go-grpc", request, out); err != nil {
		return fmt.Errorf("protoc-gen-go-grpc: %w", err)
	}
	return nil
}

// compile compiles all .proto files below dir. Imports are resolved relative to dir. The OTLP files
// that they import come from the descriptors in the generated code of OTLP.
func compile(dir string) (linker.Files, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".proto" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(protocompile.CompositeResolver{
			&protocompile.SourceResolver{ImportPaths: []string{dir}}, protocompile.ResolverFunc(otlpFile),
		}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	return c.Compile(context.Background(), names...)
}

// otlpFile finds the OTLP trace file and the files that it imports.
func otlpFile(path string) (protocompile.SearchResult, error) {
	trace := tracepb.File_opentelemetry_proto_trace_v1_trace_proto
	if trace.Path() == path {
		return protocompile.SearchResult{Desc: trace}, nil
	}
	for i := range trace.Imports().Len() {
		if f := trace.Imports().Get(i); f.Path() == path {
			return protocompile.SearchResult{Desc: f.FileDescriptor}, nil
		}
	}
	return protocompile.SearchResult{}, protoregistry.NotFound
}

// appendFile appends a file after the files that it imports, each once.
func appendFile(request *pluginpb.CodeGeneratorRequest, f protoreflect.FileDescriptor, seen map[string]bool) {
	if seen[f.Path()] {
		return
	}
	seen[f.Path()] = true
	for i := range f.Imports().Len() {
		appendFile(request, f.Imports().Get(i).FileDescriptor, seen)
	}
	request.ProtoFile = append(request.ProtoFile, protodesc.ToFileDescriptorProto(f))
}

// runPlugin runs a protoc plugin, which reads one request and writes one response, and writes the
// files of the response below out.
func runPlugin(tool string, request *pluginpb.CodeGeneratorRequest, out string) error {
	in, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "tool", tool)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return errors.New(response.GetError())
	}
	for _, f := range response.File {
		if err := writeFile(out, f.GetName(), []byte(f.GetContent())); err != nil {
			return err
		}
	}
	return nil
}
