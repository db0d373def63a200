package storequery

import (
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// MaxPeerName is how many bytes the name of a peer has at most. Longer values name none.
	MaxPeerName = 256
	// MaxPeerEdges is how many edges to peers a Graph has at most: peers are named by attributes, of whose values there is no end.
	MaxPeerEdges = 10_000
)

// PeerKeys returns the keys of the span attributes that name a peer, the most telling one first. The systems of databases and queues are
// those of OpenTelemetry's conventions, of today and before 2025.
func PeerKeys() [4]string {
	return [...]string{"peer.service", "db.system.name", "db.system", "messaging.system"}
}

// PeerOf returns the name of the peer that a span calls: the first string of 1 to MaxPeerName bytes that an attribute of the first of
// [PeerKeys] has, else of the second and so on. It is "" for spans of the server's side, whose peers are their callers.
func PeerOf(s *otlpdata.Span) string {
	if isServer(s.Kind) {
		return ""
	}
	for _, key := range PeerKeys() {
		for i := range s.Attributes {
			a := &s.Attributes[i]
			if a.Key == key && IsPeerName(a.Value.Str()) {
				return a.Value.Str()
			}
		}
	}
	return ""
}

// IsPeerName reports whether a text may be the name of a peer.
func IsPeerName(s string) bool { return s != "" && len(s) <= MaxPeerName }

// PeerCallFinder finds spans that nothing answers, by the rules of [Peers]. The zero value is ready to use and reuses its memory. Not for
// concurrent use.
type PeerCallFinder struct{ answered map[otlpdata.SpanID]struct{} }

// Each calls visit with those of the spans of a trace that call a peer.
func (l *PeerCallFinder) Each(spans []CallSpan, visit func(*CallSpan)) {
	const few = 32 // spans that are compared one by one
	if len(spans) <= few {
		for i := range spans {
			if s := &spans[i]; s.Peer != "" && !answeredAmong(spans, s.ID) {
				visit(s)
			}
		}
		return
	}
	l.index(spans)
	for i := range spans {
		s := &spans[i]
		if s.Peer == "" {
			continue
		}
		if _, answered := l.answered[s.ID]; !answered {
			visit(s)
		}
	}
}

func answeredAmong(spans []CallSpan, id otlpdata.SpanID) bool {
	for i := range spans {
		if spans[i].answers(id) {
			return true
		}
	}
	return false
}

// answers reports whether a span of the client's side with an id is answered by s.
func (s *CallSpan) answers(id otlpdata.SpanID) bool {
	return s.Parent == id && !id.IsZero() || s.ID == id && s.server()
}

func (l *PeerCallFinder) index(spans []CallSpan) {
	const keep = 1 << 12 // ids whose map is worth clearing
	if l.answered == nil || len(l.answered) > keep {
		l.answered = make(map[otlpdata.SpanID]struct{}, len(spans))
	}
	clear(l.answered)
	for i := range spans {
		s := &spans[i]
		if !s.Parent.IsZero() {
			l.answered[s.Parent] = struct{}{}
		}
		if s.server() {
			l.answered[s.ID] = struct{}{}
		}
	}
}

// PeerCounter adds up calls to peers. The zero value is ready to use. Not for concurrent use.
type PeerCounter struct {
	calls CallCounter
	lost  bool
}

// AddCall adds a call to the peer that s names. It keeps none of its strings.
func (c *PeerCounter) AddCall(s *CallSpan) {
	e := tracestore.Edge{Parent: s.Service, Child: s.Peer, Messaging: s.Kind == otlpdata.KindProducer, Calls: 1, Duration: s.Duration}
	if s.Failed {
		e.Errors = 1
	}
	if !c.calls.addEdgeWithin(&e, MaxPeerEdges) {
		c.MarkIncomplete()
	}
}

// MarkIncomplete notes that there was no room for a call.
func (c *PeerCounter) MarkIncomplete() { c.lost = true }

// Graph returns the sums. Where calls were lost it is not Complete.
func (c *PeerCounter) Graph() tracestore.Graph {
	g := tracestore.Graph{Edges: c.calls.Edges(), Complete: !c.lost}
	if c.lost {
		g.Reason = "calls to further peers are not listed; narrow the time range"
	}
	return g
}

// CountPeers returns the calls to peers among the spans of one tenant in batches; duplicates count once. It is the reference for [Peers].
// The error says that a batch cannot be read.
func CountPeers(from, to time.Time, batches ...*otlpdata.Batch) (tracestore.Graph, error) {
	var calls PeerCounter
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok {
		return calls.Graph(), nil
	}
	traces, err := callSpans(batches)
	if err != nil {
		return tracestore.Graph{}, fmt.Errorf("counting calls to peers: %w", err)
	}
	var leaves PeerCallFinder
	for _, spans := range traces {
		leaves.Each(spans, func(s *CallSpan) {
			if s.Start >= first && s.Start <= last {
				calls.AddCall(s)
			}
		})
	}
	return calls.Graph(), nil
}
