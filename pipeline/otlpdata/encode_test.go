package otlpdata

import (
	"bytes"
	"strings"
	"testing"
)

// TestAppendResourceSpansSizes tries sizes around those at which a length takes one more byte.
func TestAppendResourceSpansSizes(t *testing.T) {
	for _, n := range []int{0, 1, 126, 127, 128, 129, 16382, 16383, 16384, 2 << 20} {
		text := strings.Repeat("x", n)
		r := Resource{Raw: stringAttribute(1, "service.name", text), SchemaURL: text}
		s := Scope{Raw: fieldText(1, text), SchemaURL: text}
		span := fieldText(5, text)
		got := AppendResourceSpans([]byte("before"), &r, &s, span, span)
		got, ok := bytes.CutPrefix(got, []byte("before"))
		if !ok {
			t.Fatal("AppendResourceSpans overwrote dst")
		}
		want := fieldLen(1, fieldLen(1, r.Raw), fieldLen(2, fieldLen(1, s.Raw), fieldLen(2, span), fieldLen(2, span), text3(text)), text3(text))
		if !bytes.Equal(got, want) {
			t.Errorf("texts of %d bytes: got %d bytes, want %d", n, len(got), len(want))
		}
	}
}

// text3 returns a string in field 3, or nothing if it is empty.
func text3(s string) []byte {
	if s == "" {
		return nil
	}
	return fieldText(3, s)
}
