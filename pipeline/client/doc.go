// Package client provides gRPC and HTTP connections to other processes for components, with TLS,
// authentication, headers, compression and limits. Configuration keys that also exist in the
// OpenTelemetry Collector have the same names.
//
// A connection has the lifecycle of a component: New checks the configuration and opens nothing,
// Start reads files and does not wait for the server, Stop closes. Connections are dialed through
// [pipeline.Env].
package client
