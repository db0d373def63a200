package otlpdata_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TestParseJSON checks that values read from JSON have the same JSON.
func TestParseJSON(t *testing.T) {
	for _, text := range []string{
		"null", "true", `""`, `"a\"\\\u0001ü"`, "0", "-0", "-1", "2.5", "1e-07", "1e+21", "100000000000000000000",
		"9223372036854775807", "-9223372036854775808", "[]", "{}", `["a",1,[true,null],{"k":[1],"k":"again"}]`,
	} {
		if got := string(otlpdata.ParseJSON(text).AppendJSON(nil)); got != text {
			t.Errorf("ParseJSON(%s) is %s", text, got)
		}
	}
	for _, text := range []string{"", "[", "[1", "[1,]", `{"k"}`, "nothing"} {
		if got := otlpdata.ParseJSON(text); got != otlpdata.StringValue(text) {
			t.Errorf("ParseJSON(%s) of invalid JSON is %s", text, got.AsString())
		}
	}
}

func TestElementsInJSON(t *testing.T) {
	array := func(encoded string) otlpdata.Value { return otlpdata.EncodedValue(otlpdata.ValueArray, encoded) }
	const invalid, bytes, nan = "\x0a\x04\x0a\x02a\xff", "\x0a\x03\x3a\x01x", "\x0a\x09\x21\x01\x00\x00\x00\x00\x00\xf8\x7f"
	for _, c := range []struct {
		v    otlpdata.Value
		want string
	}{
		{otlpdata.StringValue("a"), "[]"},
		{otlpdata.ParseJSON("[]"), "[]"},
		{otlpdata.ParseJSON(`["a",null,1,true,["b"],{"c":"d"},0.5]`), `[1"a" 3"1" 2"true" 4"0.5"]`},
		{array(invalid + bytes + nan), `[1"a�" 1"eA==" 1"NaN"]`},
	} {
		var got []string
		for e := range c.v.ElementsInJSON() {
			got = append(got, fmt.Sprintf("%d%q", e.Kind(), e.AsString()))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("elements of %s: %s, want %s", c.v.AsString(), got, c.want)
		}
	}
}

func TestIndexedTexts(t *testing.T) {
	texts := func(n int) []string {
		list := "[null"
		for i := range n {
			list += fmt.Sprint(",", i)
		}
		return slices.Collect(otlpdata.ParseJSON(list + "]").IndexedTexts())
	}
	if got := texts(otlpdata.MaxIndexedElements); len(got) != otlpdata.MaxIndexedElements || got[1] != "1" {
		t.Errorf("texts of an array: %q", got)
	}
	if got := texts(otlpdata.MaxIndexedElements + 1); !slices.Equal(got, []string{otlpdata.LongArray}) {
		t.Errorf("texts of a long array: %q", got)
	}
}
