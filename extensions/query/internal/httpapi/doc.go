// Package httpapi is what the HTTP APIs of the query service share: routing, streamed JSON answers,
// the envelope with `data` and `errors`, parameters, compression, and bearer tokens.
package httpapi
