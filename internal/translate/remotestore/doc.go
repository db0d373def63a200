// Package remotestore extends the protocol of remote storage between two processes of this program.
//
// The protocol has no field for names that are not UTF-8, for errors, durations and kinds of calls
// between services, or for incomplete answers. They are sent as fields that the messages do not
// define, which other readers ignore, and as a trailer.
package remotestore

// IncompleteTrailer is the metadata after the answer of a query that tells why the answer is
// incomplete: text in UTF-8. Without it, nothing is known about completeness.
const IncompleteTrailer = "tracing-incomplete-bin"

// TokenHeader is the metadata with the bearer token of a user.
const TokenHeader = "bearer.token"

// extension is the number of the fields with additional data.
const extension = 1000
