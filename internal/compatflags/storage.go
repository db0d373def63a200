package compatflags

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
)

// GRPCExporter returns the flags of exporter grpc.
func GRPCExporter() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "grpc-storage.server", Key: "endpoint", Value: hostPorts, Doc: "Address of the remote storage server, host:port."},
		{Name: "multi-tenancy.header", Key: "tenant_header", Doc: "Header that names the tenant."},
		{Name: "grpc-storage.connection-timeout", Key: "connect_timeout", Doc: "Maximum time for one connection attempt."},
	}, clientTLSFlags("grpc-storage", "tls"))
}

// RemoteStorage returns the flags of extension remote_storage.
func RemoteStorage() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "grpc.host-port", Key: "endpoint", Value: hostPort, Doc: "Address on which to serve the remote storage API."},
	}, tlsFlags("grpc", "tls"), tenancyFlags(""))
}
