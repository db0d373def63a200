// Package storewire encodes the types of package tracestore for the store service, with which two
// processes of this program share a store. It knows no message types: a new field in a request or a
// response needs no change here.
//
// # Format
//
// A message is a sequence of well-formed CBOR items (RFC 8949) without indefinite lengths:
//
//	integers, floats, booleans   as in CBOR; floats have 64 bits
//	text                         a text string the first time; then its number in the message
//	encoding.TextMarshaler       a text
//	bytes, ids                   a byte string
//	slice, array, set            an array
//	struct                       an array: its shape, then the values of the fields in the shape
//	shape                        tag 6 and the names of fields the first time; then its number
//	pointer                      the value, or null
//	interface                    null, or an array: the name of the type, then the value
//	time                         an array: seconds since the Unix epoch, nanoseconds
//	histogram                    an array: sum, first bucket, counts
//
// Fields with the zero value are left out. Texts need not be UTF-8, because names and values in
// spans need not be.
//
// # Versions
//
// Both ends may have different versions. Since zero fields are left out, a field that the receiver
// does not know has a meaning: in a request it is an error; in a response it is ignored, and
// [Decoder.Omitted] says so if the response has reasons. A new [Version] is needed for a field
// without which such a response means something else, and for a changed meaning of a field. Unknown
// methods, types and constants are errors.
package storewire

import (
	"errors"
	"fmt"
)

// Version is the version of the protocol.
const Version = 1

// Limits of one message. They are far above the limits of a search, and keep a client from making
// the server hold or evaluate arbitrarily large conditions.
const (
	MaxDepth        = 500      // nesting of conditions
	MaxParts        = 8192     // And, Or, Not and comparisons
	MaxPatterns     = 64 << 10 // bytes of all regular expressions
	MaxPatternSteps = 8192     // of all regular expressions, with repetitions expanded
)

// ErrInvalid is wrapped by the errors for invalid messages.
var ErrInvalid = errors.New("invalid store message")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// Reasons in the error details of a status (google.rpc.ErrorInfo), for errors that clients
// distinguish.
const (
	Domain            = "tracing.store.v1"
	ReasonNotAllowed  = "DELETE_NOT_ALLOWED" // tracestore.ErrNotAllowed
	ReasonBadDeletion = "INVALID_DELETION"   // tracestore.ErrBadDeletion
	ReasonDamaged     = "DAMAGED"            // tracestore.DamagedError; the next detail is a Damage as BytesValue
)

// Service is the name of the gRPC service. All of its methods take one message and return a stream.
const Service = "tracing.store.v1.StoreService"

// Method returns the full name of a method.
func Method(name string) string { return "/" + Service + "/" + name }
