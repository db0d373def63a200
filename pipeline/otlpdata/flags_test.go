package otlpdata

import (
	"fmt"
	"reflect"
	"testing"
)

func debugFlags(n uint64) []byte { return attribute(9, FlagsAttribute, fieldVarint(3, n)) }

// The counts do not depend on how the batch was made, or on the position of the attribute.
func TestDebugIsCounted(t *testing.T) {
	more := stringAttribute(9, "k", "v")
	request := fieldLen(1, wireResource("shop"), fieldLen(2,
		fieldLen(2, wireSpan(debugFlags(3))), fieldLen(2, wireSpan(more, debugFlags(2), more, more)),
		fieldLen(2, wireSpan(fieldText(4, "parentid"), more, debugFlags(2))),
		fieldLen(2, wireSpan(debugFlags(2), field32(16, 1), more)), // attributes that are not consecutive
		fieldLen(2, wireSpan(debugFlags(9))),                       // firehose
		fieldLen(2, wireSpan(attribute(9, FlagsAttribute, fieldText(1, "2")))),
		fieldLen(2, wireSpan(more, field32(16, 1))),
		fieldLen(2, wireSpan(stringAttribute(9, "service.name", "x"), debugFlags(2)))))
	want := ServiceCount{Service: "shop", Spans: 8, Roots: 7}
	want.Debug.Spans, want.Debug.Roots = 5, 4

	b := fromOTLP(t, request, Meta{})
	if got := b.Services(); !reflect.DeepEqual(got, []ServiceCount{want}) {
		t.Errorf("walked: got %+v, want %+v", got, want)
	}
	td, err := b.Traces()
	if err != nil {
		t.Fatal(err)
	}
	if got := FromTraces(td, Meta{}).Services(); !reflect.DeepEqual(got, []ServiceCount{want}) {
		t.Errorf("from objects: got %+v, want %+v", got, want)
	}
	both, err := Concat(b, b)
	if err != nil {
		t.Fatal(err)
	}
	if got := both.Services()[0]; got.Debug.Spans != 10 || got.Debug.Roots != 8 {
		t.Errorf("joined: got %+v", got)
	}
}

func TestNativeFlags(t *testing.T) {
	for _, c := range []struct {
		span Span
		want uint32
	}{
		{Span{}, 0},
		{Span{Flags: 0x301}, FlagSampled},
		{Span{Flags: 0x300}, 0},
		{Span{Flags: 1, Attributes: []KeyValue{{FlagsAttribute, IntValue(2)}}}, FlagDebug},
		{Span{Attributes: []KeyValue{{FlagsAttribute, StringValue("2")}}}, 0},
	} {
		if got := c.span.NativeFlags(); got != c.want {
			t.Errorf("%s: got %d, want %d", fmt.Sprintf("%+v", c.span), got, c.want)
		}
	}
}
