package rows

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// PeerIsHost is the bit of Call.Connection that marks the peer as a host: tracestore.Edges.Edges
// returns an edge to it, but tracestore.Edges.Peers does not list it. The other bits are a
// tracestore.Connection.
const PeerIsHost = 1 << 7

// Call is the column call: the values of a span for counting calls between services. The values
// often determine each other, so one column takes less space than three.
type Call struct {
	Kind       int32
	Connection uint8
	Peer       string // "" if there is none
}

// CallOf returns the call of a span.
func CallOf(s *otlpdata.Span) Call {
	c := Call{Kind: s.Kind, Connection: uint8(tracestore.ConnectionOf(s)), Peer: storequery.PeerOf(s)}
	if c.Peer != "" {
		return c
	}
	if c.Peer = storequery.EdgePeerOf(s); c.Peer != "" {
		c.Connection |= PeerIsHost
	}
	return c
}

// append appends the value of the column: a byte, a varint, and text.
func (c *Call) append(dst []byte) []byte {
	dst = binary.AppendVarint(append(dst, c.Connection), int64(c.Kind))
	return append(dst, c.Peer...)
}

var errCall = errors.New("invalid call")

// ParseCall parses a value of the column call. Peer is a part of value.
func ParseCall(value string) (c Call, err error) {
	if value == "" {
		return c, errCall
	}
	encoded, size, ok := number(value[1:])
	kind := int64(encoded>>1) ^ -int64(encoded&1)
	if !ok || kind < math.MinInt32 || kind > math.MaxInt32 {
		return c, errCall
	}
	return Call{Kind: int32(kind), Connection: value[0], Peer: value[1+size:]}, nil
}

// SplitIDs returns the ids of a span and its parent from a value of the column ids.
func SplitIDs[T string | []byte](value T) (id, parent otlpdata.SpanID, err error) {
	if len(value) != len(id)+len(parent) {
		return id, parent, errors.New("ids have a wrong length")
	}
	copy(id[:], value)
	copy(parent[:], value[len(id):])
	return id, parent, nil
}
