package server

import (
	"errors"
	"maps"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// AddDescriptors makes reflection look up descriptors in r if they are not in protobuf's global
// registry. A service without a descriptor, such as a name for the health service only, is not
// listed. Call AddDescriptors before Start. r must be safe for concurrent use.
func (g *GRPC) AddDescriptors(r protodesc.Resolver) {
	g.descriptors.additional = append(g.descriptors.additional, r)
}

// registerReflection registers the reflection service, v1 and v1alpha.
func (g *GRPC) registerReflection() {
	opts := reflection.ServerOptions{Services: described{g}, DescriptorResolver: &g.descriptors}
	reflectionpb.RegisterServerReflectionServer(g, reflection.NewServerV1(opts))
	reflectionalpha.RegisterServerReflectionServer(g, reflection.NewServer(opts))
}

// described lists the services that reflection can describe.
type described struct{ server *GRPC }

// GetServiceInfo implements reflection.ServiceInfoProvider.
func (d described) GetServiceInfo() map[string]grpc.ServiceInfo {
	services := maps.Clone(d.server.GetServiceInfo())
	maps.DeleteFunc(services, func(name string, _ grpc.ServiceInfo) bool {
		_, err := d.server.descriptors.FindDescriptorByName(protoreflect.FullName(name))
		return err != nil
	})
	return services
}

// resolvers looks up descriptors in the global registry first, then in the additional resolvers in
// order.
type resolvers struct{ additional []protodesc.Resolver }

func (rs *resolvers) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	return firstFound(rs.additional, func(r protodesc.Resolver) (protoreflect.FileDescriptor, error) { return r.FindFileByPath(path) })
}

func (rs *resolvers) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	return firstFound(rs.additional, func(r protodesc.Resolver) (protoreflect.Descriptor, error) { return r.FindDescriptorByName(name) })
}

// firstFound returns the first result that is not protoregistry.NotFound.
func firstFound[D any](additional []protodesc.Resolver, find func(protodesc.Resolver) (D, error)) (D, error) {
	d, err := find(protoregistry.GlobalFiles)
	for i := 0; i < len(additional) && errors.Is(err, protoregistry.NotFound); i++ {
		d, err = find(additional[i])
	}
	return d, err
}
