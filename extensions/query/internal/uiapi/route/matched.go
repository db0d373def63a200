package route

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// MaxMatchedIDs is the maximum number of ids of matching spans for each trace.
const MaxMatchedIDs = 10

// Matched holds the number of matching spans of a trace, and the ids of the first ones by start.
type Matched struct {
	Spans int
	First []SpanKey // at most [MaxMatchedIDs]
}

// SpanKey orders spans by start, in nanoseconds since the Unix epoch.
type SpanKey struct {
	Start uint64
	ID    otlpdata.SpanID
}

// Compare orders by start, then by id.
func (a SpanKey) Compare(b SpanKey) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), bytes.Compare(a.ID[:], b.ID[:]))
}

// Add adds a span.
func (m *Matched) Add(k SpanKey) {
	m.Spans++
	m.First = InsertFirst(m.First, k, SpanKey.Compare, MaxMatchedIDs)
}

// AppendJSON appends a member of an object, after a comma.
func (m *Matched) AppendJSON(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `,"matched":{"spans":`...), int64(m.Spans), 10)
	dst = append(dst, `,"ids":[`...)
	for i, s := range m.First {
		dst = append(hex.AppendEncode(append(httpapi.Comma(dst, i), '"'), s.ID[:]), '"')
	}
	return append(dst, "]}"...)
}

// InsertFirst inserts v into a sorted list and keeps at most the given number of elements from the
// start.
func InsertFirst[T any](list []T, v T, compare func(a, b T) int, most int) []T {
	i, _ := slices.BinarySearchFunc(list, v, compare)
	if i == most {
		return list
	}
	list = slices.Insert(list, i, v)
	return list[:min(len(list), most)]
}
