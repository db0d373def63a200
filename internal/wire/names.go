package wire

import (
	"slices"
	"strings"

	"google.golang.org/grpc"
)

// Names of protobuf packages begin with neutral here and in documents, and with original in existing clients and services. Nothing else
// knows the two.
const (
	neutral  = "tracing."
	original = "jaeger."
)

// Original is the name by which existing clients and services call what has the full name name, such as tracing.api_v2.CollectorService.
// Names that are not branded, such as opentelemetry.proto.collector.trace.v1.TraceService, are the same in both worlds.
func Original(name string) string {
	if rest, ok := strings.CutPrefix(name, neutral); ok {
		return original + rest
	}
	return name
}

// Names are the full names under which a service is served: its own, and the original one if that is another.
func Names(service string) []string { return slices.Compact([]string{service, Original(service)}) }

// Register registers a service under both of its names, with one handler. Interceptors see the method's name in desc, whichever of them was
// called.
func Register(r grpc.ServiceRegistrar, desc *grpc.ServiceDesc, impl any) {
	for _, name := range Names(desc.ServiceName) {
		d := *desc
		d.ServiceName = name
		r.RegisterService(&d, impl)
	}
}
