// Package wire holds the protobuf definitions of the project's own APIs (folder proto) and, in one
// package each, the Go code that `make generate` writes for them.
//
//	api_v2         package tracing.api_v2: native spans; collector, sampling and query services
//	api_v3         package tracing.api_v3: query service that returns OTLP
//	expression_v1  package tracing.expression.v1: filters in api_v3 and storage_v2
//	storage_v1     package tracing.storage.v1: remote storage with the native span model
//	storage_v2     package tracing.storage.v2: remote storage with OTLP
//	streaming      package tracing.streaming: searches whose responses are sent in parts
//
// The program decodes and encodes spans without these types. They are used for the small messages
// of queries, for gRPC reflection, and in tests: for clients, and as the reference for the codecs.
//
// Every protobuf package has a second name, under which existing clients and servers know it.
// Services are served under both names, see [Register], and reflection describes them under both,
// see [Originals]. The store service has no protobuf messages: see internal/translate/storewire.
package wire
