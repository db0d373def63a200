package otlpdata

import (
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// ParseJSON returns the value that [Value.AppendJSON] wrote as text. It is for stores that keep
// only the JSON of arrays. JSON strings become strings, also those for bytes, NaN and infinities.
// If text does not begin with valid JSON, the result is text itself as a string.
func ParseJSON(text string) Value {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := decodeJSON(d)
	if err != nil {
		return StringValue(text)
	}
	return v
}

func decodeJSON(d *json.Decoder) (v Value, err error) {
	token, err := d.Token()
	if err != nil {
		return v, err
	}
	switch t := token.(type) {
	case string:
		return StringValue(t), nil
	case bool:
		return BoolValue(t), nil
	case json.Number:
		if n, err := strconv.ParseInt(string(t), 10, 64); err == nil && t != "-0" {
			return IntValue(n), nil
		}
		f, err := t.Float64()
		return DoubleValue(f), err
	case json.Delim:
		var items []byte
		for d.More() {
			var key json.Token
			if t == '{' {
				if key, err = d.Token(); err != nil {
					return v, err
				}
			}
			item, err := decodeJSON(d)
			if err != nil {
				return v, err
			}
			if name, ok := key.(string); ok {
				items = appendAttributes(items, 1, []KeyValue{{name, item}})
			} else {
				items = item.appendEncoded(protoenc.AppendHeader(items, 1, item.encodedSize()))
			}
		}
		kind := ValueArray
		if t == '{' {
			kind = ValueMap
		}
		_, err = d.Token()
		return EncodedValue(kind, string(items)), err
	}
	return v, nil // null
}

// ElementsInJSON yields the texts, numbers and booleans among the elements of a ValueArray as its
// JSON has them, which is all that some stores have of it. So bytes, NaN and infinities are texts,
// and texts are valid UTF-8. It yields nothing for other kinds.
func (v Value) ElementsInJSON() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for e := range v.Elements() {
			switch e.kind {
			case ValueEmpty, ValueArray, ValueMap:
				continue
			case ValueBytes:
				e = StringValue(e.AsString())
			case ValueDouble:
				if f := e.Double(); math.IsNaN(f) || math.IsInf(f, 0) {
					e = StringValue(e.AsString())
				}
			case ValueString:
				if !utf8.ValidString(e.data) {
					e = StringValue(string([]rune(e.data)))
				}
			}
			if !yield(e) {
				return
			}
		}
	}
}

// MaxIndexedElements is the maximum number of elements of an array that a store adds to an index or
// a filter. For longer arrays, it adds LongArray instead. A search looks for LongArray, too.
const MaxIndexedElements = 128

// LongArray stands for the elements of a long array; see [MaxIndexedElements].
const LongArray = "[..."

// IndexedTexts yields the texts of the elements of a ValueArray, or LongArray. A store adds them to
// an index or a filter, besides the text of the whole array.
func (v Value) IndexedTexts() iter.Seq[string] {
	return func(yield func(string) bool) {
		n := 0
		for range v.ElementsInJSON() {
			if n++; n > MaxIndexedElements {
				yield(LongArray)
				return
			}
		}
		for e := range v.ElementsInJSON() {
			if !yield(e.AsString()) {
				return
			}
		}
	}
}
