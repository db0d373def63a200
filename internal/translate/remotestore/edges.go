package remotestore

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Edge is a tracestore.Edge: the calls from one service to another or to itself.
type Edge struct {
	Parent, Child string
	Messaging     bool
	Calls, Errors uint64
	Duration      uint64
}

// Field numbers of an edge.
const (
	edgeParent = iota + 1
	edgeChild
	edgeMessaging
	edgeCalls
	edgeErrors
	edgeDuration
)

// PutEdges adds edges to m.
func PutEdges(m proto.Message, edges []Edge) {
	var all, one []byte
	for i := range edges {
		one = appendEdge(one[:0], &edges[i])
		all = appendField(all, one)
	}
	m.ProtoReflect().SetUnknown(all)
}

// Edges returns the edges that [PutEdges] added to m, or nil if there are none.
func Edges(m proto.Message) []Edge {
	var out []Edge
	for b := range fields(m) {
		out = append(out, readEdge(b))
	}
	return out
}

func appendEdge(dst []byte, e *Edge) []byte {
	dst = protowire.AppendString(protowire.AppendTag(dst, edgeParent, protowire.BytesType), e.Parent)
	dst = protowire.AppendString(protowire.AppendTag(dst, edgeChild, protowire.BytesType), e.Child)
	dst = appendNumber(dst, edgeMessaging, protowire.EncodeBool(e.Messaging))
	dst = appendNumber(dst, edgeCalls, e.Calls)
	dst = appendNumber(dst, edgeErrors, e.Errors)
	return appendNumber(dst, edgeDuration, e.Duration)
}

func appendNumber(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
}

// readEdge reads an edge. It ignores unknown fields and stops at malformed data.
func readEdge(b []byte) (e Edge) {
	for len(b) > 0 {
		num, typ, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			return e
		}
		n := protowire.ConsumeFieldValue(num, typ, b[tag:])
		if n < 0 {
			return e
		}
		value := b[tag : tag+n]
		switch typ {
		case protowire.BytesType:
			text, _ := protowire.ConsumeString(value)
			e.setText(num, text)
		case protowire.VarintType:
			number, _ := protowire.ConsumeVarint(value)
			e.setNumber(num, number)
		}
		b = b[tag+n:]
	}
	return e
}

func (e *Edge) setText(num protowire.Number, text string) {
	switch num {
	case edgeParent:
		e.Parent = text
	case edgeChild:
		e.Child = text
	}
}

func (e *Edge) setNumber(num protowire.Number, v uint64) {
	switch num {
	case edgeMessaging:
		e.Messaging = protowire.DecodeBool(v)
	case edgeCalls:
		e.Calls = v
	case edgeErrors:
		e.Errors = v
	case edgeDuration:
		e.Duration = v
	}
}
