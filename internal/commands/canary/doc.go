// Package canary continuously writes known spans to an installation, reads them back, and reports
// spans that are lost or changed anywhere between a client and the query API. It implements the
// command `tracing canary`.
//
// A seed and a time determine the content of a trace, so only the time has to be remembered, and
// another process that knows the seed can compute what must be stored. The expected response is
// computed here, independently of the code that produces responses: the package imports neither a
// store nor the conversion to JSON.
//
//	generate ──▶ trace ──encode──▶ POST /v1/traces
//	                └────show────▶ compare ◀── GET /api/traces/{id}, GET /api/traces?...
package canary
