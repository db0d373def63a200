package compatflags

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
)

// GRPCExporter returns the flags of exporter grpc.
func GRPCExporter() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "grpc-storage.server", Key: "endpoint", Value: hostPorts, Doc: "Address of the remote storage server, host:port."},
		{Name: "multi-tenancy.header", Key: "tenant_header", Doc: "Header with the name of the tenant."},
		{Name: "grpc-storage.connection-timeout", Key: "connect_timeout", Doc: "Maximum time of one attempt to connect."},
	}, clientTLSFlags("grpc-storage", "tls"))
}

// RemoteStorage returns the flags of extension remote_storage.
func RemoteStorage() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "grpc.host-port", Key: "endpoint", Value: hostPort, Doc: "Address of the remote storage server."},
	}, tlsFlags("grpc", "tls"), tenancyFlags(""))
}
