// Package wire is where the project's wire formats are written down: the interface files in the folders proto and thrift, and the Go code
// generated from them (make generate) in a package for each.
//
//	api_v2         protobuf, package tracing.api_v2: the native model, the collector's service, sampling, queries
//	api_v3         protobuf, package tracing.api_v3: queries that are answered with OTLP
//	storage_v1     protobuf, package tracing.storage.v1: stores of other processes, in the native model
//	storage_v2     protobuf, package tracing.storage.v2: stores of other processes, in OTLP
//	zipkin_proto3  protobuf, package zipkin.proto3: for tests only, see its file
//	nativethrift   Thrift: the native model
//	agentthrift    Thrift: what arrives over UDP, without the message's header
//	zipkincore     Thrift: Zipkin's first model
//
// The program decodes and encodes spans without these types: they are the oracle of its tests, what test clients send, and, for protobuf,
// what reflection tells. The small messages of queries it builds.
//
// The package itself knows that every name of ours has a second one: the clients and services that exist call package `tracing.api_v2` by
// the name of the original's maker. Services are served under both names, see [Register], and described under both, see [Originals].
package wire
