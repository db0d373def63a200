package probabilisticsampler

import (
	"bytes"
	"math"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// priorityKey is the attribute with which a span requests to be sampled or dropped. It is defined
// by OpenTracing.
const priorityKey = "sampling.priority"

// priority is the effect of the attribute on one span.
type priority int

const (
	priorityNone priority = iota
	priorityDrop          // the attribute is 0
	priorityKeep          // the attribute is above 0
)

// Fields of an attribute of a span, and of its value.
const (
	fieldSpanAttributes = 9
	fieldKey            = 1
	fieldValue          = 2
	fieldStringValue    = 1
	fieldIntValue       = 3
	fieldDoubleValue    = 4
	fieldLastValue      = 7 // bytes
)

// mentionsPriority reports whether a request may contain the attribute. Most requests do not, so
// their attributes need not be read.
func mentionsPriority(request []byte) bool { return bytes.Contains(request, []byte(priorityKey)) }

// priorityOf returns the priority in an encoded attribute; found says whether it is the priority
// attribute.
func priorityOf(attribute []byte) (p priority, found bool) {
	var key []byte
	number := math.NaN()
	for f := range protoenc.Fields(attribute) {
		switch {
		case f.Num == fieldKey && f.Bytes:
			key = f.Content
		case f.Num == fieldValue && f.Bytes:
			number = numberOf(f.Content, number)
		}
	}
	switch {
	case string(key) != priorityKey:
		return priorityNone, false
	case number == 0:
		return priorityDrop, true
	case number > 0:
		return priorityKeep, true
	}
	return priorityNone, true
}

// numberOf returns the number in an encoded value, which may be text, or NaN. If the value has no
// fields, it returns before.
func numberOf(value []byte, before float64) float64 {
	for f := range protoenc.Fields(value) {
		if f.Num < fieldStringValue || f.Num > fieldLastValue {
			continue
		}
		before = math.NaN()
		switch f.Num {
		case fieldStringValue:
			if n, err := strconv.ParseFloat(string(f.Content), 64); err == nil {
				before = n
			}
		case fieldIntValue:
			before = float64(int64(f.Value))
		case fieldDoubleValue:
			before = math.Float64frombits(f.Value)
		}
	}
	return before
}
