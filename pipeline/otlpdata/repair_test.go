package otlpdata

import (
	"math"
	"testing"
)

func TestServiceName(t *testing.T) {
	other := KeyValue{Key: "host.name", Value: StringValue("h")}
	name := func(v Value) KeyValue { return KeyValue{Key: "service.name", Value: v} }
	for want, attributes := range map[string][]KeyValue{
		"missing-service-name":    {other},
		"service-name-wrong-type": {other, name(IntValue(7)), name(StringValue("later"))},
		"empty-service-name":      {name(StringValue("")), name(StringValue("later"))},
		"cart":                    {other, name(StringValue("cart")), name(StringValue("later"))},
		"\xff":                    {name(StringValue("\xff"))},
	} {
		if got := ServiceName(attributes); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := ServiceName([]KeyValue{name(Value{})}); got != WrongTypeServiceName {
		t.Errorf("empty value: got %q", got)
	}
	if got := ServiceName(nil); got != MissingServiceName {
		t.Errorf("no attributes: got %q", got)
	}
}

func TestOperation(t *testing.T) {
	for name, want := range map[string]string{"": "empty-span-name", "GET /": "GET /", "a\xff": "invalid-span-name",
		"\ufffd": "\ufffd", "世": "世"} {
		if got := (&Span{Name: name}).Operation(); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		start, end, want uint64
		repaired         bool
	}{
		{10, 15, 5, false}, {10, 11, 1, false}, {10, 10, 1, false}, {10, 9, 1, true}, {10, 0, 1, true}, {0, 0, 1, false},
		{0, math.MaxUint64, math.MaxUint64, false}, {math.MaxUint64, 0, 1, true},
	} {
		if got, repaired := (&Span{Start: c.start, End: c.end}).Duration(); got != c.want || repaired != c.repaired {
			t.Errorf("%d to %d: got %d, %v, want %d, %v", c.start, c.end, got, repaired, c.want, c.repaired)
		}
	}
}

func TestKindName(t *testing.T) {
	for kind, want := range map[int32]string{-1: "", 0: "", 1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer", 6: ""} {
		if got := (&Span{Kind: kind}).KindName(); got != want {
			t.Errorf("%d: got %q, want %q", kind, got, want)
		}
	}
}

func TestStatusName(t *testing.T) {
	for code, want := range map[int32]string{-1: "unset", StatusUnset: "unset", StatusOK: "ok", StatusError: "error", 3: "unset"} {
		if got := StatusName(code); got != want {
			t.Errorf("%d: got %q, want %q", code, got, want)
		}
	}
}

func TestIDs(t *testing.T) {
	for want, id := range map[string]TraceID{
		"0000000000000000":                 {},
		"00000000000000ff":                 {15: 0xff},
		"01000000000000000000000000000000": {1},
		"00000000000000010000000000000000": {7: 1},
	} {
		if got := id.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if id.IsZero() != (want == "0000000000000000") {
			t.Errorf("%s: IsZero is %v", want, id.IsZero())
		}
	}
	if got := (SpanID{0, 0xab}).String(); got != "00ab000000000000" || (SpanID{7: 1}).IsZero() || !(SpanID{}).IsZero() {
		t.Errorf("span id: got %s", got)
	}
}
