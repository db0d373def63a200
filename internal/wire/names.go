package wire

import (
	"slices"
	"strings"

	"google.golang.org/grpc"
)

// Names of protobuf packages start with neutral in this program and its documents, and with
// original in existing clients and services. Only this package knows both prefixes.
const (
	neutral  = "tracing."
	original = "jaeger."
)

// Original returns the name that existing clients and services use for the full name name, such as
// tracing.api_v2.CollectorService. Names without our prefix, such as
// opentelemetry.proto.collector.trace.v1.TraceService, are returned unchanged.
func Original(name string) string {
	if rest, ok := strings.CutPrefix(name, neutral); ok {
		return original + rest
	}
	return name
}

// Names returns the full names under which a service is served: its own, and the original one if it
// differs.
func Names(service string) []string { return slices.Compact([]string{service, Original(service)}) }

// Register registers a service under both of its names with one handler. Interceptors see the
// method name in desc, whichever name the client used.
func Register(r grpc.ServiceRegistrar, desc *grpc.ServiceDesc, impl any) {
	for _, name := range Names(desc.ServiceName) {
		d := *desc
		d.ServiceName = name
		r.RegisterService(&d, impl)
	}
}
