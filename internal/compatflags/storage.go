package compatflags

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
)

// The flags of remote storage, on both sides.

// GRPCExporter returns the flags of exporter grpc.
func GRPCExporter() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "grpc-storage.server", Key: "endpoint", Value: hostPorts, Doc: "The store of another process, host:port."},
		{Name: "multi-tenancy.header", Key: "tenant_header", Doc: "The header that names the tenant."},
		{Name: "grpc-storage.connection-timeout", Key: "connect_timeout", Doc: "How long one attempt to connect to it may take."},
	}, clientTLSFlags("grpc-storage", "tls"))
}

// RemoteStorage returns the flags of extension remote_storage.
func RemoteStorage() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "grpc.host-port", Key: "endpoint", Value: pipeline.HostPort, Doc: "Where the store is served to other processes."},
	}, tlsFlags("grpc", "tls"), tenancyFlags(""))
}
