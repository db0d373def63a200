// Package remotestore extends the protocol of remote storage between two processes of this program.
//
// The protocol has no fields for names that are not UTF-8, for errors, durations and kinds of calls
// between services, or for incomplete results. They are sent in undefined fields of the messages,
// which other readers ignore, and in a trailer.
package remotestore

// IncompleteTrailer is the trailer of a query that says why the result is incomplete: text in
// UTF-8. Without it, nothing is known about completeness.
const IncompleteTrailer = "tracing-incomplete-bin"

// TokenHeader is the metadata with a user's bearer token.
const TokenHeader = "bearer.token"

// extension is the field number for additional data.
const extension = 1000
