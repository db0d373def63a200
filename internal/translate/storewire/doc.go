// Package storewire converts between the types of package tracestore and the messages of the store
// service (tracing.store.v1), with which two processes of this program share a store.
//
// Functions whose name begins with Put convert to a message, and Get from a message. A message may
// come from any process: Get returns an error for one that is invalid, and allocates memory in
// proportion to its size. It ignores fields and values that it does not know, except for conditions
// of a query.
package storewire

import (
	"errors"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Version is the highest version of the protocol that this program supports.
const Version = 1

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
)

func putTime(t time.Time) *store_v1.Time {
	if t.IsZero() {
		return nil
	}
	return &store_v1.Time{Seconds: t.Unix(), Nanos: int32(t.Nanosecond())}
}

func getTime(t *store_v1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return time.Unix(t.Seconds, int64(t.Nanos)).UTC()
}

// GetTraceID returns a trace id.
func GetTraceID(b []byte) (id otlpdata.TraceID, err error) {
	if len(b) != len(id) {
		return id, invalid("trace id has %d bytes, want %d", len(b), len(id))
	}
	return otlpdata.TraceID(b), nil
}

func putTexts(texts []string) [][]byte {
	out := make([][]byte, len(texts))
	for i, t := range texts {
		out[i] = []byte(t)
	}
	return out
}

// GetTexts returns texts.
func GetTexts(texts [][]byte) []string {
	if texts == nil {
		return nil
	}
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = string(t)
	}
	return out
}
