package zipkin

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// skipAll checks a whole document.
func skipAll(b []byte) error {
	var s scanner
	s.reset(b)
	s.skip()
	return s.end()
}

var documents = []string{
	``, ` `, `x`, `[`, `[]`, `[ ]x`, `{}`, `{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1}`, `{"a" 1}`, `{a:1}`, `{"a":1,}`, `{"a":1 "b":2}`,
	`[1,2`, `[1 2]`, `[1,]`, `[,]`, `null`, `nul`, `nulx`, `true`, `tru`, `trux`, `false`, `fals`, `falsy`, `0`, `01`, `-`, `-1`, `-x`, `1.`, `1.5`, `1.x`, `1e`,
	`1e+`, `1e5`, `1E-5x`, `[1.5e+3,-0]`, `+1`, `.5`, `"`, `"a`, `"a\`, `"a\x"`, `"\u12"`, `"\u12G4"`, `"\ud800"`, `"\ud83d\ude00"`, `"\ud800\ud800"`, `"\ud800\n"`,
	`"\ud800\uzzzz"`, "\"a\nb\"", "\"\x00\"", "\x00", "[\x80]", "\"\xff\xfe\"", `"'"'`, `'a'`, `[""]]`, "\xef\xbb\xbf[]", `"a\/b\\c\"d\b\f\n\r\t"`,
	`[{"traceId":"1","id":"2","tags":{"a":"b","c":null},"annotations":[{"timestamp":1,"value":"x"}]}]`,
	strings.Repeat(`[`, 600), strings.Repeat(`{"a":`, 500) + `1` + strings.Repeat(`}`, 500),
}

// The scanner rejects a document exactly when encoding/json rejects it, with the same text.
func FuzzScannerAgainstJSON(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var raw json.RawMessage
		want, got := json.Unmarshal(b, &raw), skipAll(b)
		if got != nil && got.Error() == "exceeded max depth" {
			if bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) < maxSkipDepth {
				t.Fatalf("too deep: %q", b)
			}
			return
		}
		if got == errEnd && strings.HasPrefix(errText(want), "invalid character ' ' ") {
			return // the library adds a space to find the end of a token
		}
		if errText(got) != errText(want) {
			t.Fatalf("%q: got %v, want %v", b, got, want)
		}
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Strings are read as by encoding/json, except for bytes that are not UTF-8.
func FuzzStringAgainstJSON(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var want string
		if json.Unmarshal(b, &want) != nil || !utf8.Valid(b) {
			return
		}
		var s scanner
		s.reset(b)
		if got := s.str(); got != want || s.end() != nil {
			t.Fatalf("%q: got %q (%v), want %q", b, got, s.err, want)
		}
	})
}

func TestScannerInt(t *testing.T) {
	for doc, want := range map[string]int64{
		`1`: 1, `-5`: -5, `1472470996199000`: 1472470996199000, `1.9`: 1, `1.5e3`: 1500, `"12"`: 12, `" 12.0 "`: 12, `""`: 0, `null`: 0, `1e400`: 1<<63 - 1,
		`-1e400`: -1 << 63, `9223372036854775807`: 1<<63 - 1, `9223372036854775808`: 1<<63 - 1, `-99999999999999999999`: -1 << 63,
	} {
		var s scanner
		s.reset([]byte(doc))
		if got := s.int(); got != want || s.end() != nil {
			t.Errorf("%s: got %d (%v), want %d", doc, got, s.err, want)
		}
	}
	for doc, want := range map[string]string{
		`"x"`: `cannot read "x" as number`, `"NaN"`: `cannot read "NaN" as number`, `{}`: "cannot read object as number at byte 0",
		`[`: "cannot read array as number at byte 0", ``: "unexpected end of JSON input",
	} {
		var s scanner
		s.reset([]byte(doc))
		s.int()
		if err := s.end(); errText(err) != want {
			t.Errorf("%s: got %v, want %s", doc, err, want)
		}
	}
}

// After an error the scanner does not move, and every loop ends.
func TestScannerErrorSticks(t *testing.T) {
	var s scanner
	s.reset([]byte(`[{"a":x,"b":["c"]}]`))
	reads := 0
	for ok := s.array(); ok; ok = s.element() {
		for _, ok := s.object(); ok; _, ok = s.member() {
			reads++
			s.skip()
		}
	}
	if _, ok := s.object(); ok || s.array() || s.bool() || s.str() != "" || s.int() != 0 || s.scalar() != "" || reads != 1 {
		t.Errorf("read on after an error, %d members", reads)
	}
	if err := s.end(); errText(err) != "invalid character 'x' looking for beginning of value" {
		t.Errorf("got %v", err)
	}
}

func TestScalar(t *testing.T) {
	for doc, want := range map[string]string{
		`"a\nb"`: "a\nb", `null`: "", `true`: "true", `false`: "false", `1.50`: "1.50", ` {"a": [1]} `: `{"a": [1]}`, `[]`: "[]",
	} {
		var s scanner
		s.reset([]byte(doc))
		if got := s.scalar(); got != want || s.end() != nil {
			t.Errorf("%s: got %q (%v)", doc, got, s.err)
		}
	}
}
