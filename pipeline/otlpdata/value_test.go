package otlpdata

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// wireValue decodes a value like a walk.
func wireValue(t testing.TB, b ...[]byte) Value {
	t.Helper()
	var v Value
	if err := v.decode(cat(b...), maxDepth); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestValueForms(t *testing.T) {
	nested := wireValue(t, fieldLen(6, stringAttribute(1, "a", "x\"y"), attribute(1, "b", fieldLen(5, fieldLen(1, fieldVarint(3, 1)),
		fieldLen(1))),
		stringAttribute(1, "a", "\xff"), attribute(1, "n", field64(4, math.Float64bits(math.NaN())))))
	for _, c := range []struct {
		name       string
		value      Value
		text, json string
	}{
		{"empty", Value{}, "", "null"},
		{"string", StringValue("a<b>&"), "a<b>&", `"a<b>&"`},
		{"empty string", StringValue(""), "", `""`},
		{"control characters", StringValue("\x00\n\r\t\x1f\x7f"), "\x00\n\r\t\x1f\x7f", "\"\\u0000\\n\\r\\t\\u001f\x7f\""},
		{"quotes", StringValue(`"\`), `"\`, `"\"\\"`},
		{"line separators", StringValue("a\u2028b\u2029"), "a\u2028b\u2029", `"a\u2028b\u2029"`},
		{"invalid UTF-8", StringValue("a\xffb\xc3"), "a\xffb\xc3", "\"a\ufffdb\ufffd\""},
		{"true", BoolValue(true), "true", "true"},
		{"false", BoolValue(false), "false", "false"},
		{"largest integer", IntValue(math.MaxInt64), "9223372036854775807", "9223372036854775807"},
		{"smallest integer", IntValue(math.MinInt64), "-9223372036854775808", "-9223372036854775808"},
		{"double", DoubleValue(0.1), "0.1", "0.1"},
		{"whole double", DoubleValue(3), "3", "3"},
		{"negative zero", DoubleValue(math.Copysign(0, -1)), "-0", "-0"},
		{"large double", DoubleValue(1e300), "1e+300", "1e+300"},
		{"double of 21 digits", DoubleValue(123456789012345680000), "123456789012345680000", "123456789012345680000"},
		{"small double", DoubleValue(1e-7), "1e-07", "1e-07"},
		{"NaN", DoubleValue(math.NaN()), "NaN", `"NaN"`},
		{"infinity", DoubleValue(math.Inf(1)), "+Inf", `"+Inf"`},
		{"negative infinity", DoubleValue(math.Inf(-1)), "-Inf", `"-Inf"`},
		{"bytes", wireValue(t, fieldText(7, "\x00\xff")), "AP8=", `"AP8="`},
		{"no bytes", wireValue(t, fieldText(7, "")), "", `""`},
		{"empty array", wireValue(t, fieldLen(5)), "[]", "[]"},
		{"empty map", wireValue(t, fieldLen(6)), "{}", "{}"},
		{"nested", nested, `{"a":"x\"y","b":[1,null],"a":"` + "\ufffd" + `","n":"NaN"}`,
			`{"a":"x\"y","b":[1,null],"a":"` + "\ufffd" + `","n":"NaN"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.value.AsString(); got != c.text {
				t.Errorf("text: got %q, want %q", got, c.text)
			}
			if got := string(c.value.AppendText([]byte("> "))); got != "> "+c.text {
				t.Errorf("AppendText: got %q", got)
			}
			if got := string(c.value.AppendJSON([]byte("> "))); got != "> "+c.json {
				t.Errorf("JSON: got %s, want %s", got, c.json)
			}
			if got, err := json.Marshal(c.value); err != nil || !json.Valid(got) {
				t.Errorf("json.Marshal: %s, %v", got, err)
			}
		})
	}
}

// TestValueAccessors checks that accessors for another kind return nothing.
func TestValueAccessors(t *testing.T) {
	bytesValue := wireValue(t, fieldText(7, "b"))
	array := wireValue(t, fieldLen(5, fieldLen(1, fieldText(1, "e"))))
	list := wireValue(t, fieldLen(6, stringAttribute(1, "k", "v")))
	for _, v := range []Value{{}, StringValue("s"), BoolValue(true), IntValue(7), DoubleValue(0.5), bytesValue, array, list} {
		elements, entries := 0, 0
		for range v.Elements() {
			elements++
		}
		for range v.Entries() {
			entries++
		}
		k := v.Kind()
		if (v.Str() == "s") != (k == ValueString) || v.Bool() != (k == ValueBool) || (v.Int() == 7) != (k == ValueInt) ||
			(v.Double() == 0.5) != (k == ValueDouble) || (v.Bytes() != nil) != (k == ValueBytes) ||
			(elements == 1) != (k == ValueArray) || (entries == 1) != (k == ValueMap) {
			t.Errorf("kind %d: %q %v %d %g %q, %d elements, %d entries", k, v.Str(), v.Bool(), v.Int(), v.Double(), v.Bytes(), elements, entries)
		}
	}
}

func TestBreakFromRanges(t *testing.T) {
	element, entry := fieldLen(1, fieldText(1, "e")), stringAttribute(1, "k", "v")
	for range wireValue(t, fieldLen(5, element, element)).Elements() {
		break
	}
	for range wireValue(t, fieldLen(6, entry, entry)).Entries() {
		break
	}
	n := 0
	for e := range wireValue(t, fieldLen(5, element, fieldVarint(9, 1), element)).Elements() {
		if n++; e.Str() != "e" {
			t.Errorf("got %q", e.Str())
		}
	}
	if n != 2 {
		t.Errorf("got %d elements, want 2", n)
	}
}

// TestEqualValues: values can be compared with ==, whatever the field contained before.
func TestEqualValues(t *testing.T) {
	b := request(wireSpan(fieldLen(9, fieldText(1, "k"), fieldLen(2, fieldVarint(3, 7)), fieldLen(2, fieldText(1, "v")))))
	err := Walk(b, spanFunc(func(s *Span) error {
		if v, ok := Get(s.Attributes, "k"); !ok || v != StringValue("v") {
			t.Errorf("got %#v, want %#v", v, StringValue("v"))
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if wireValue(t, fieldVarint(2, 9)) != BoolValue(true) {
		t.Error("a true from the wire differs from BoolValue(true)")
	}
}

func TestDeepValues(t *testing.T) {
	for _, pattern := range []string{"a", "m"} {
		v := wireValue(t, nest(2000, pattern))
		text := v.AppendJSON(nil)
		if !json.Valid(text) || !bytes.Contains(text, []byte(`"x"`)) {
			t.Errorf("pattern %s: not JSON", pattern)
		}
		if got := bytes.Count(text, []byte("[")) + bytes.Count(text, []byte("{")); got != 1999 {
			t.Errorf("pattern %s: %d levels, want 1999", pattern, got)
		}
	}
}

func checkJSONString(t *testing.T, s string) {
	t.Helper()
	got := AppendJSONString(nil, s)
	var back string
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatalf("%q: %s: %v", s, got, err)
	}
	if want := string([]rune(s)); back != want { // the conversion replaces invalid bytes
		t.Fatalf("%q: got %q, want %q", s, back, want)
	}
	if !utf8.Valid(got) {
		t.Fatalf("%q: invalid UTF-8: %q", s, got)
	}
	// encoding/json writes the same, except for \b and \f.
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(string([]rune(s))); err != nil {
		t.Fatal(err)
	}
	theirs := strings.TrimSuffix(want.String(), "\n")
	if !strings.ContainsAny(s, "\b\f") && string(got) != theirs {
		t.Fatalf("%q: got %s, encoding/json writes %s", s, got, theirs)
	}
}

func FuzzAppendJSONString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\/", "\x00\b\f\n\r\t\x1f\x7f", "\u2028\u2029\u2027", "\xff\xc3\x28", "\ufffd", "é世😀",
		"\xed\xa0\x80", "<>&"} {
		f.Add(s)
	}
	f.Fuzz(checkJSONString)
}

// FuzzValueJSON checks that every valid value has valid JSON, and that the text forms agree.
func FuzzValueJSON(f *testing.F) {
	f.Add(nest(10, "am"))
	f.Add(cat(field64(4, math.Float64bits(math.Inf(-1)))))
	f.Add(fieldText(7, "\x00\x01"))
	f.Add(fieldLen(6, stringAttribute(1, "\xff\u2028", "\x00\\"), attribute(1, "", field64(4, 0x7ff0_0000_0000_0001))))
	f.Fuzz(func(t *testing.T, b []byte) {
		var v Value
		if v.decode(b, 64) != nil {
			return
		}
		if text := v.AppendJSON(nil); !json.Valid(text) {
			t.Fatalf("not JSON: %s", text)
		}
		if a, s := string(v.AppendText(nil)), v.AsString(); a != s {
			t.Fatalf("AppendText %q, AsString %q", a, s)
		}
	})
}
