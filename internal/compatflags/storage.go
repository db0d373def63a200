package compatflags

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
)

// GRPCExporter returns the flags of the `grpc` exporter.
func GRPCExporter() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "grpc-storage.server", Key: "endpoint", Distinctive: "GRPC_STORAGE_", Value: oneServer,
			Doc: "Address of the remote storage server, host:port, or a comma-separated list of servers " +
				"with different stores, which are read as one."},
		{Name: "grpc-storage.server", Key: "endpoints", Value: severalServers},
		{Name: "multi-tenancy.header", Key: "tenant_header", Doc: "Header that names the tenant."},
		{Name: "grpc-storage.connection-timeout", Key: "connect_timeout", Doc: "Maximum time for one connection attempt."},
	}, clientTLSFlags("grpc-storage", "tls"))
}

// RemoteStorage returns the flags of the `remote_storage` extension.
func RemoteStorage() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "grpc.host-port", Key: "endpoint", Value: hostPort, Doc: "Address on which to serve the remote storage API."},
	}, tlsFlags("grpc", "tls"), tenancyFlags(""))
}

// oneServer parses the address of a server. It returns none if there are several.
func oneServer(text string) (any, error) {
	servers, err := addresses(text)
	if err != nil || len(servers) > 1 {
		return nil, err
	}
	return servers[0], nil
}

// severalServers parses the addresses of several servers. It returns none if there is only one.
func severalServers(text string) (any, error) {
	servers, err := addresses(text)
	if err != nil || len(servers) == 1 {
		return nil, err
	}
	return servers, nil
}
