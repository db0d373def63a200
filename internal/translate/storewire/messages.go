package storewire

import (
	"errors"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Requests, which hold the arguments of methods in package tracestore, and responses that are not
// types of that package. New fields here or there need no other change. An older server refuses a
// request with a field that it does not know.
type (
	// Hello is the request of the method Capabilities, which a client calls first on each
	// connection.
	Hello struct {
		Version int // the highest that the client supports
	}
	// Capabilities describes a server.
	Capabilities struct {
		Version int // for this client, at most the version in Hello
		// Interfaces has the names of the optional interfaces of package tracestore that the store
		// supports. Clients ignore unknown names.
		Interfaces []string
	}
	// Traces requests traces. The response consists of messages with a TracePart each.
	Traces struct{ Refs []tracestore.TraceRef }
	// SelectSpans is answered like Traces.
	SelectSpans struct {
		Trace otlpdata.TraceID
		Spans []otlpdata.SpanID
	}
	// TracePart is a piece of a trace.
	TracePart struct {
		ID    otlpdata.TraceID
		Spans []byte // encoded OTLP TracesData
	}
	// Find requests traces that match a query. The response consists of messages with any number of
	// FoundPart each.
	Find struct {
		Query tracestore.Query
		Want  tracestore.Want
	}
	// FoundPart is a part of the results: a trace without its spans, spans of the last trace, or
	// the end.
	FoundPart struct {
		Trace    *tracestore.Result
		Spans    []byte // encoded OTLP TracesData
		Complete bool   // all of the last trace was sent
		Scanned  int    // spans examined when the trace was found
		End      *FindEnd
	}
	// FindEnd is the end of a search.
	FindEnd struct {
		Outcome tracestore.Outcome
		// Limited: the server ended the results at its own limit of traces. The client can continue
		// at Outcome.Next.
		Limited bool
	}
	// Services asks for a Names.
	Services struct{ Names tracestore.NameQuery }
	// Operations asks for an OperationList.
	Operations struct {
		Service, Kind string
		Names         tracestore.NameQuery
	}
	// Attributes requests a Names: keys, or values of a key.
	Attributes struct {
		Key, Prefix string
		Limit       int
	}
	// Names is a list of names.
	Names struct {
		Names []string
		More  bool // there are others
	}
	// OperationList is a list of operations.
	OperationList struct {
		Operations []tracestore.Operation
		More       bool // there are others
	}
	// Aggregate asks for an aggregate.
	Aggregate struct {
		Query tracestore.Query
		What  tracestore.Aggregation
	}
	// ProfilePaths asks for a path profile.
	ProfilePaths struct {
		Query     tracestore.Query
		Selection tracestore.Selection
		Options   tracestore.PathOptions
	}
	// Window asks for calls.
	Window struct{ From, To time.Time }
	// Outline requests the outline of a trace. The response consists of messages with several
	// tracestore.SummarySpan each.
	Outline struct {
		Trace otlpdata.TraceID
		Limit int
	}
	// FindSpans asks for spans of a trace.
	FindSpans struct {
		Trace     otlpdata.TraceID
		Condition tracestore.SpanCondition
	}
	// Trace asks for the version of a trace.
	Trace struct{ ID otlpdata.TraceID }
	// Usage asks what the store holds.
	Usage struct{}
	// Follow requests spans as they are stored. The response consists of messages with a Followed
	// each. The first one is empty: the server sends it as soon as it follows the store.
	Follow struct{ Capacity int }
	// Followed has stored spans, and the number of spans that were missed before them.
	Followed struct {
		Spans  []byte // encoded OTLP TracesData
		Missed int
	}
	// Damage is a tracestore.DamagedError, which is a detail of the status DATA_LOSS.
	Damage struct {
		tracestore.Reasons
		Cause string // if it is known
	}
)

// DamageOf converts a DamagedError to a message.
func DamageOf(d *tracestore.DamagedError) *Damage {
	out := &Damage{Reasons: d.Reasons}
	if d.Err != nil {
		out.Cause = d.Err.Error()
	}
	return out
}

// Damaged returns a message as a DamagedError.
func (m *Damage) Damaged() *tracestore.DamagedError {
	out := &tracestore.DamagedError{Reasons: m.Reasons}
	if m.Cause != "" {
		out.Err = errors.New(m.Cause)
	}
	return out
}
