package storequery

import (
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// MaxPeerName is the maximum length of the name of a peer in bytes. Longer values are not
	// treated as names.
	MaxPeerName = 256
	// MaxPeerEdges is the maximum number of edges to peers in a Graph. A limit is needed because
	// peers are named by attributes, which can have any number of values.
	MaxPeerEdges = 10_000
)

var peersOmitted = tracestore.Because(tracestore.ReasonLimit,
	"calls to some peers are omitted because there are too many; narrow the time range")

// PeerKeys returns the keys of the span attributes that name a peer, the most specific one first.
// The keys are from OpenTelemetry's semantic conventions, including the keys for services and
// databases before they were renamed.
func PeerKeys() [5]string {
	return [...]string{"service.peer.name", "peer.service", "db.system.name", "db.system", "messaging.system"}
}

// PeerOf returns the name of the peer that a span calls: the value of the first of [PeerKeys] for
// which the span has a string of 1 to MaxPeerName bytes. It returns "" for spans on the server
// side, whose peers are their callers.
func PeerOf(s *otlpdata.Span) string {
	if isServer(s.Kind) {
		return ""
	}
	keys := PeerKeys()
	return peerOf(s, keys[:])
}

func peerOf(s *otlpdata.Span, keys []string) string {
	for _, key := range keys {
		for i := range s.Attributes {
			a := &s.Attributes[i]
			if a.Key == key && IsPeerName(a.Value.Str()) {
				return a.Value.Str()
			}
		}
	}
	return ""
}

// IsPeerName reports whether a text is valid as the name of a peer.
func IsPeerName(s string) bool { return s != "" && len(s) <= MaxPeerName }

// PeerCallFinder finds calls to peers by the rules of [tracestore.Edges]. The zero value is ready
// to use. A PeerCallFinder reuses its memory and is not safe for concurrent use.
type PeerCallFinder struct{ answered map[otlpdata.SpanID]struct{} }

// Each calls visit with the indexes of the spans of a trace that are calls to a peer.
func (f *PeerCallFinder) Each(spans []CallSpan, visit func(at int)) {
	const maxCompared = 32 // more spans are indexed instead of compared one by one
	if len(spans) <= maxCompared {
		for i := range spans {
			if s := &spans[i]; s.Peer != "" && !isAnswered(spans, s.ID) {
				visit(i)
			}
		}
		return
	}
	f.index(spans)
	for i := range spans {
		s := &spans[i]
		if s.Peer == "" {
			continue
		}
		if _, answered := f.answered[s.ID]; !answered {
			visit(i)
		}
	}
}

func isAnswered(spans []CallSpan, id otlpdata.SpanID) bool {
	for i := range spans {
		if spans[i].answers(id) {
			return true
		}
	}
	return false
}

// answers reports whether s is the counterpart of a client-side span with an id.
func (s *CallSpan) answers(id otlpdata.SpanID) bool {
	return s.Parent == id && !id.IsZero() || s.ID == id && s.isServer()
}

func (f *PeerCallFinder) index(spans []CallSpan) {
	const maxReused = 1 << 12 // ids; clearing a larger map costs more than a new one
	if f.answered == nil || len(f.answered) > maxReused {
		f.answered = make(map[otlpdata.SpanID]struct{}, len(spans))
	}
	clear(f.answered)
	for i := range spans {
		s := &spans[i]
		if !s.Parent.IsZero() {
			f.answered[s.Parent] = struct{}{}
		}
		if s.isServer() {
			f.answered[s.ID] = struct{}{}
		}
	}
}

// PeerCounter counts calls to peers. The zero value is ready to use. Not safe for concurrent use.
type PeerCounter struct {
	calls      CallCounter
	incomplete bool
}

// AddPeer adds a call to the peer that s names. It does not retain strings of s.
func (c *PeerCounter) AddPeer(s *CallSpan) {
	e := tracestore.Edge{Parent: s.Service, Child: s.Peer, Messaging: s.Kind == otlpdata.KindProducer, Calls: 1, Duration: s.Duration}
	if s.Failed {
		e.Errors = 1
	}
	c.AddEdge(&e)
}

// AddEdge adds the calls, errors and duration of e. It does not retain strings of e.
func (c *PeerCounter) AddEdge(e *tracestore.Edge) {
	if !c.calls.addEdgeWithin(e, MaxPeerEdges) {
		c.MarkIncomplete()
	}
}

// MarkIncomplete records that a call was not counted because of a limit.
func (c *PeerCounter) MarkIncomplete() { c.incomplete = true }

// Graph returns the counts. It is not complete if calls were not counted.
func (c *PeerCounter) Graph() tracestore.Graph {
	g := tracestore.Graph{Edges: c.calls.Edges()}
	if c.incomplete {
		g.Reasons = peersOmitted
	}
	return g
}

// CountPeers counts the calls to peers among the spans of one tenant in batches; duplicates count
// once. It is the reference implementation of [tracestore.Edges]. An error means that a batch
// cannot be read.
func CountPeers(from, to time.Time, batches ...*otlpdata.Batch) (tracestore.Graph, error) {
	var calls PeerCounter
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok {
		return calls.Graph(), nil
	}
	traces, err := callSpans(batches, CallSpanOf)
	if err != nil {
		return tracestore.Graph{}, fmt.Errorf("counting calls to peers: %w", err)
	}
	var finder PeerCallFinder
	for _, spans := range traces {
		finder.Each(spans, func(at int) {
			if s := &spans[at]; s.Start >= first && s.Start <= last {
				calls.AddPeer(s)
			}
		})
	}
	return calls.Graph(), nil
}
