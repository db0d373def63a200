// Package httpapi contains what the HTTP APIs of the query service share: routing, streamed JSON
// responses, the envelope with `data` and `errors`, parameters, compression, and bearer tokens.
package httpapi
