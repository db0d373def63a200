// Package remotestore is what two processes of ours, at both ends of remote storage (reference 3.7 and 3.8), tell each other beyond the
// protocol.
//
// The protocol has no place for a name that is not UTF-8, nor for errors, durations and kinds of calls between services, nor for an answer
// that is not complete. They travel as fields that the messages do not define, which every other reader passes over, and as a trailer.
package remotestore

// IncompleteTrailer is the metadata, behind the answer of a query, that says why it is not complete: text in UTF-8. Without it nobody knows.
const IncompleteTrailer = "tracing-incomplete-bin"

// TokenHeader is the metadata that carries a user's token (reference 12.3).
const TokenHeader = "bearer.token"

// extension is the number of the field that carries what a message has no field for.
const extension = 1000
