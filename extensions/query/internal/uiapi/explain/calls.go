package explain

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Limits of calls. Further calls are counted as one.
const (
	maxOperations = 2000
	maxCalls      = 4000
)

const (
	operationMemory = 128
	spanMemory      = 96 // of the current trace
)

// callIndex records the calls in the counted traces. A call is a pair of operations: the caller's
// and the callee's.
type callIndex struct {
	operations map[operationID]int32
	byID       map[callID]int32
	list       []call
	peers      map[string]int32 // numbers from 1 on
	peerNames  []string

	// Of the current trace.
	spans       []traceSpan
	byspan      map[otlpdata.SpanID]int32
	occurrences []occurrence
}

type callID struct{ operation, caller int32 }

// call is a call of an operation.
type call struct {
	operation, caller operationID
	traces            []uint32 // as of key
	spans, failed     int
	peer              int32 // peer that all its spans call; 0: none, -1: several
}

// traceSpan is a span of the current trace.
type traceSpan struct {
	id, parent otlpdata.SpanID
	start      uint64
	operation  int32
	peer       int32
	failed     bool
	answered   bool // it has a child
	name       operationID
}

// occurrence is a value of a span of the current trace.
type occurrence struct {
	value *value
	span  int32
}

func newCallIndex() callIndex {
	return callIndex{operations: map[operationID]int32{{}: 0}, byID: map[callID]int32{}, list: []call{{}}, peers: map[string]int32{},
		byspan: map[otlpdata.SpanID]int32{}}
}

// addSpan adds a span of the current trace.
func (c *counter) addSpan(s tracestore.Span) {
	o := &c.calls
	name := operationID{s.Resource.Service, s.Operation()}
	operation, known := o.operations[name]
	if !known && len(o.operations) < maxOperations {
		name = operationID{strings.Clone(name.service), strings.Clone(name.name)}
		operation = int32(len(o.operations))
		o.operations[name] = operation
		c.memory += operationMemory + len(name.service) + len(name.name)
	}
	if len(o.spans) == cap(o.spans) {
		c.memory += (len(o.spans) + 1) * spanMemory // it doubles
	}
	if !known && operation == 0 {
		name = operationID{}
	}
	o.spans = append(o.spans, traceSpan{id: s.SpanID, parent: s.ParentID, start: s.Start, operation: operation, name: name,
		peer: c.peerOf(s.Span), failed: s.StatusCode == otlpdata.StatusError})
}

// peerOf returns the number of the peer of a span, 0 if it has none.
func (c *counter) peerOf(s *otlpdata.Span) int32 {
	peer := storequery.PeerOf(s)
	if peer == "" {
		return 0
	}
	n, known := c.calls.peers[peer]
	if !known && len(c.calls.peerNames) < maxOperations {
		c.calls.peerNames = append(c.calls.peerNames, strings.Clone(peer))
		n = int32(len(c.calls.peerNames))
		c.calls.peers[strings.Clone(peer)] = n
		c.memory += operationMemory + len(peer)
	}
	return n
}

// endTrace counts the calls of the current trace, and its values.
func (c *counter) endTrace() {
	o := &c.calls
	if len(o.spans) == 0 {
		return
	}
	clear(o.byspan)
	for i := range o.spans {
		o.byspan[o.spans[i].id] = int32(i)
	}
	t := uint32(len(c.traces) - 1)
	callOf := make([]int32, len(o.spans))
	root := -1
	for i := range o.spans {
		s := &o.spans[i]
		caller := int32(-1)
		var above operationID
		if parent, ok := o.byspan[s.parent]; ok && !s.parent.IsZero() {
			o.spans[parent].answered = true
			caller, above = o.spans[parent].operation, o.spans[parent].name
		} else if root < 0 || earlierRoot(s, &o.spans[root]) {
			root = i
		}
		callOf[i] = c.callAt(callID{s.operation, caller}, s.name, above)
	}
	if root >= 0 {
		c.traces[t].root = o.spans[root].operation
	}
	for i := range o.spans {
		c.countCall(&o.list[callOf[i]], &o.spans[i], t)
	}
	for _, seen := range o.occurrences {
		c.count(seen.value)
		c.countPlace(seen.value, callOf[seen.span], o.spans[seen.span].failed)
	}
	o.spans, o.occurrences = o.spans[:0], o.occurrences[:0]
}

// earlierRoot reports whether a span is the root of a trace rather than another one.
func earlierRoot(s, than *traceSpan) bool {
	if s.parent.IsZero() != than.parent.IsZero() {
		return s.parent.IsZero()
	}
	return s.start < than.start
}

// callAt returns the index of a call, 0 if there are too many.
func (c *counter) callAt(id callID, operation, caller operationID) int32 {
	at, known := c.calls.byID[id]
	if !known && len(c.calls.list) < maxCalls {
		at = int32(len(c.calls.list))
		c.calls.byID[id] = at
		c.calls.list = append(c.calls.list, call{operation: operation, caller: caller})
		c.memory += operationMemory
	}
	return at
}

func (c *counter) countCall(n *call, s *traceSpan, t uint32) {
	if last := len(n.traces); last == 0 || n.traces[last-1] != t {
		n.traces = append(n.traces, t)
		c.memory += indexMemory
	}
	peer := s.peer
	if s.answered || peer == 0 {
		peer = -1
	}
	if n.spans == 0 {
		n.peer = peer
	} else if n.peer != peer {
		n.peer = -1
	}
	n.spans++
	if s.failed {
		n.failed++
	}
}

// countPlace records the calls on which a value and its key occur.
func (c *counter) countPlace(v *value, call int32, failed bool) {
	k := v.key
	k.spans++
	if failed {
		k.failed++
	}
	c.memory += addTo(&v.calls, call) + addTo(&k.calls, call)
}

// addTo adds a number to a sorted list if it is new, and returns the additional memory.
func addTo(list *[]int32, n int32) int {
	at, found := slices.BinarySearch(*list, n)
	if found {
		return 0
	}
	*list = slices.Insert(*list, at, n)
	return indexMemory
}

// waitingOn returns the names of the peers that calls wait for.
func (c *counter) waitingOn() map[callName]string {
	out := make(map[callName]string)
	for i := range c.calls.list {
		if n := &c.calls.list[i]; n.peer > 0 {
			out[callName{n.operation, n.caller}] = c.calls.peerNames[n.peer-1]
		}
	}
	return out
}

// callName names a call.
type callName struct{ operation, caller operationID }
