package server

import (
	"errors"

	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Describe makes reflection describe what r finds, beside what protobuf's global registry holds and comes first. A service that no resolver
// finds is listed all the same. Only before Start; reflection calls r concurrently.
func (g *GRPC) Describe(r protodesc.Resolver) { g.described.more = append(g.described.more, r) }

// registerReflection registers both versions of the reflection service.
func (g *GRPC) registerReflection() {
	opts := reflection.ServerOptions{Services: g, DescriptorResolver: &g.described}
	reflectionpb.RegisterServerReflectionServer(g, reflection.NewServerV1(opts))
	reflectionalpha.RegisterServerReflectionServer(g, reflection.NewServer(opts))
}

// resolvers asks the global registry and then others, until one of them knows.
type resolvers struct{ more []protodesc.Resolver }

func (rs *resolvers) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	return firstFound(rs.more, func(r protodesc.Resolver) (protoreflect.FileDescriptor, error) { return r.FindFileByPath(path) })
}

func (rs *resolvers) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	return firstFound(rs.more, func(r protodesc.Resolver) (protoreflect.Descriptor, error) { return r.FindDescriptorByName(name) })
}

func firstFound[D any](more []protodesc.Resolver, find func(protodesc.Resolver) (D, error)) (D, error) {
	d, err := find(protoregistry.GlobalFiles)
	for i := 0; i < len(more) && errors.Is(err, protoregistry.NotFound); i++ {
		d, err = find(more[i])
	}
	return d, err
}
