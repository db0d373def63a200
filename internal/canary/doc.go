// Package canary writes known spans to a deployment and reads them back, for ever: it says whether spans get lost or come back wrong
// anywhere between a client and the query API. It is the command `tracing canary`.
//
// What a trace holds follows from a seed and a time alone, so nothing has to be remembered of it but the time, and another process that
// knows the seed can tell what must be stored. What an answer must say is worked out here, apart from the code that makes answers:
// the package imports neither a store nor the translation to JSON.
//
//	generate ──▶ trace ──encode──▶ POST /v1/traces
//	                └────show────▶ compare ◀── GET /api/traces/{id}, GET /api/traces?...
package canary
