package wire

import (
	"slices"
	"strings"

	"google.golang.org/grpc"
)

// Names of protobuf packages start with neutral in this program and its documents. In existing
// clients and services they start with jaeger, except streaming, which is named tempo. Only this
// package knows these prefixes.
const (
	neutral   = "tracing."
	streaming = "tracing.streaming."
	jaeger    = "jaeger."
	tempo     = "tempopb."
)

// Original returns the name that existing clients and services use for the full name name, such as
// tracing.api_v2.CollectorService. Names without our prefix, such as
// opentelemetry.proto.collector.trace.v1.TraceService, are returned unchanged.
func Original(name string) string {
	if rest, ok := strings.CutPrefix(name+".", streaming); ok { // also the name of the package itself
		return strings.TrimSuffix(tempo+rest, ".")
	}
	if rest, ok := strings.CutPrefix(name, neutral); ok {
		return jaeger + rest
	}
	return name
}

// isOriginal reports whether Original returns names like name.
func isOriginal(name string) bool {
	return strings.HasPrefix(name, jaeger) || strings.HasPrefix(name, tempo)
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
