package wire

import (
	"fmt"
	pathpkg "path"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/internal/wire/api_v2/metrics"
	"github.com/tracing-backend/tracing/internal/wire/api_v3"
	"github.com/tracing-backend/tracing/internal/wire/expression_v1"
	"github.com/tracing-backend/tracing/internal/wire/storage_v1"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	streamingpb "github.com/tracing-backend/tracing/internal/wire/streaming"
)

// described returns the files whose types have two names.
func described() []protoreflect.FileDescriptor {
	return []protoreflect.FileDescriptor{
		api_v2.File_tracing_api_v2_model_proto,
		api_v2.File_tracing_api_v2_collector_proto,
		api_v2.File_tracing_api_v2_sampling_proto,
		api_v2.File_tracing_api_v2_query_proto,
		metrics.File_tracing_api_v2_metrics_openmetrics_proto,
		metrics.File_tracing_api_v2_metrics_metricsquery_proto,
		api_v3.File_tracing_api_v3_query_service_proto,
		expression_v1.File_tracing_expression_v1_expression_proto,
		storage_v1.File_tracing_storage_v1_storage_proto,
		storage_v2.File_tracing_storage_v2_trace_storage_proto,
		storage_v2.File_tracing_storage_v2_dependency_storage_proto,
		storage_v2.File_tracing_storage_v2_capabilities_proto,
		streamingpb.File_tracing_streaming_streaming_proto,
	}
}

// Originals returns a resolver for our protobuf files under the names that existing clients know:
// copies in which the packages and the paths of the files have their original names. The copies are
// not part of protobuf's global registry, so they cannot conflict with it. They are made on first
// use. The resolver may be used concurrently.
func Originals() protodesc.Resolver {
	return originals{sync.OnceValues(func() (*protoregistry.Files, error) { return renamed(described()) })}
}

type originals struct {
	files func() (*protoregistry.Files, error)
}

// FindFileByPath returns a copy by its path, such as the original name of
// tracing/api_v2/model.proto.
func (o originals) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if !isOriginal(strings.ReplaceAll(path, "/", ".")) {
		return nil, protoregistry.NotFound
	}
	files, err := o.files()
	if err != nil {
		return nil, err
	}
	return files.FindFileByPath(path)
}

// FindDescriptorByName returns a service, message or other declaration of a copy.
func (o originals) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if !isOriginal(string(name)) {
		return nil, protoregistry.NotFound
	}
	files, err := o.files()
	if err != nil {
		return nil, err
	}
	return files.FindDescriptorByName(name)
}

// renamed returns copies of files and their imports, linked with each other, in which original
// names replace neutral ones.
func renamed(files []protoreflect.FileDescriptor) (*protoregistry.Files, error) {
	set := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, renameFile(protodesc.ToFileDescriptorProto(f)))
	}
	for _, f := range files {
		add(f)
	}
	linked, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, fmt.Errorf("rename descriptors: %w", err)
	}
	return linked, nil
}

// originalPath returns the path of a file under the name that clients know.
func originalPath(path string) string {
	folder, file := pathpkg.Split(path)
	return strings.ReplaceAll(Original(strings.ReplaceAll(folder, "/", ".")), ".", "/") + file
}

// renameFile renames a file, its package and its references. It changes f.
func renameFile(f *descriptorpb.FileDescriptorProto) *descriptorpb.FileDescriptorProto {
	f.Name = proto.String(originalPath(f.GetName()))
	f.Package = proto.String(Original(f.GetPackage()))
	for i, path := range f.Dependency {
		f.Dependency[i] = originalPath(path)
	}
	for _, m := range f.MessageType {
		renameMessage(m)
	}
	for _, s := range f.Service {
		for _, m := range s.Method {
			renameType(m.InputType)
			renameType(m.OutputType)
		}
	}
	return f
}

func renameMessage(m *descriptorpb.DescriptorProto) {
	for _, f := range m.Field {
		renameType(f.TypeName)
	}
	for _, nested := range m.NestedType {
		renameMessage(nested)
	}
}

// renameType renames a reference to a type, such as `.tracing.api_v2.Span`. nil means no type.
func renameType(name *string) {
	if name != nil {
		*name = "." + Original((*name)[1:])
	}
}
