package otlpdata

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/soak"
)

// expectLimit checks that err is the LimitError for a limit.
func expectLimit(t *testing.T, err error, limit string, max int, tooLarge bool) {
	t.Helper()
	var le *LimitError
	if !errors.As(err, &le) {
		t.Fatalf("got error %v, want a LimitError", err)
	}
	if le.Limit != limit || le.Max != max || le.TooLarge != tooLarge {
		t.Errorf("got %+v, want %q, %d, too large %v", *le, limit, max, tooLarge)
	}
	if want := fmt.Sprintf("otlp: %s: more than %d", limit, max); err.Error() != want {
		t.Errorf("got text %q, want %q", err, want)
	}
}

// fromBoth passes the request to FromOTLP, and its JSON form to FromJSON.
func fromBoth(t *testing.T, protobuf []byte, f func(t *testing.T, from func(Limits) (*Batch, error))) {
	t.Run("protobuf", func(t *testing.T) {
		f(t, func(l Limits) (*Batch, error) { return FromOTLP(protobuf, Meta{}, l) })
	})
	t.Run("JSON", func(t *testing.T) {
		text := toJSON(t, protobuf)
		f(t, func(l Limits) (*Batch, error) { return FromJSON(text, Meta{}, l) })
	})
}

func TestLimitOfSpans(t *testing.T) {
	twoScopes := fieldLen(1, wireResource("cart"), fieldLen(2, fieldLen(2, wireSpan())),
		fieldLen(2, fieldLen(2, wireSpan()), fieldLen(2, wireSpan())))
	for name, b := range map[string][]byte{"one scope": request(wireSpan(), wireSpan(), wireSpan()), "two scopes": twoScopes,
		"two resources": cat(request(wireSpan(), wireSpan()), request(wireSpan()))} {
		t.Run(name, func(t *testing.T) {
			fromBoth(t, b, func(t *testing.T, from func(Limits) (*Batch, error)) {
				if b, err := from(Limits{Spans: 4}); err != nil || b.Len() != 3 {
					t.Errorf("got %v, %v; want 3 spans", b, err)
				}
				_, err := from(Limits{Spans: 2})
				if name == "one scope" {
					expectLimit(t, err, "spans in one request", 2, true)
				}
				if le := (*LimitError)(nil); !errors.As(err, &le) || !le.TooLarge {
					t.Errorf("got error %v, want a LimitError with TooLarge", err)
				}
			})
		})
	}
}

func TestLimitOfGroups(t *testing.T) {
	fromBoth(t, bytes.Repeat(fieldLen(1, fieldLen(2)), 2), func(t *testing.T, from func(Limits) (*Batch, error)) {
		if _, err := from(Limits{Spans: 4}); err != nil {
			t.Error(err)
		}
		_, err := from(Limits{Spans: 3})
		expectLimit(t, err, "resources and scopes in one request", 3, true)
	})
}

func TestLimitOfBytes(t *testing.T) {
	b := request(wireSpan())
	if _, err := FromOTLP(b, Meta{}, Limits{Bytes: len(b)}); err != nil {
		t.Error(err)
	}
	_, err := FromOTLP(b, Meta{}, Limits{Bytes: len(b) - 1})
	expectLimit(t, err, "request size in bytes", len(b)-1, true)

	text := toJSON(t, b)
	if _, err := FromJSON(text, Meta{}, Limits{Bytes: len(text)}); err != nil {
		t.Error(err)
	}
	_, err = FromJSON(text, Meta{}, Limits{Bytes: len(text) - 1})
	expectLimit(t, err, "request size in bytes", len(text)-1, true)
}

func TestLimitOfItems(t *testing.T) {
	kv := stringAttribute(9, "k", "v")
	event := fieldLen(11, stringAttribute(3, "k", "v"))
	for name, three := range map[string][]byte{
		"resource":         fieldLen(1, fieldLen(1, bytes.Repeat(stringAttribute(1, "k", "v"), 3))),
		"scope":            fieldLen(1, fieldLen(2, fieldLen(1, bytes.Repeat(stringAttribute(3, "k", "v"), 3)))),
		"span":             request(bytes.Repeat(kv, 3)),
		"events":           request(bytes.Repeat(fieldLen(11), 3)),
		"links":            request(bytes.Repeat(fieldLen(13), 3)),
		"event attributes": request(cat(event, event, event)),
		"link attributes":  request(fieldLen(13, bytes.Repeat(stringAttribute(4, "k", "v"), 3))),
	} {
		t.Run(name, func(t *testing.T) {
			fromBoth(t, three, func(t *testing.T, from func(Limits) (*Batch, error)) {
				if _, err := from(Limits{Items: 3}); err != nil {
					t.Error(err)
				}
				_, err := from(Limits{Items: 2})
				expectLimit(t, err, "attributes, events or links in one list", 2, false)
			})
		})
	}
	if _, err := FromOTLP(request(bytes.Repeat(kv, 3), bytes.Repeat(kv, 3)), Meta{}, Limits{Items: 3}); err != nil {
		t.Errorf("the limit applies to each list, but two lists together failed: %v", err)
	}
}

func TestLimitOfDepth(t *testing.T) {
	places := map[string]func(value []byte) []byte{
		"span":     func(v []byte) []byte { return request(wireSpan(attribute(9, "k", v))) },
		"resource": func(v []byte) []byte { return fieldLen(1, fieldLen(1, attribute(1, "k", v))) },
		"scope":    func(v []byte) []byte { return fieldLen(1, fieldLen(2, fieldLen(1, attribute(3, "k", v)))) },
		"event":    func(v []byte) []byte { return request(wireSpan(fieldLen(11, attribute(3, "k", v)))) },
		"link":     func(v []byte) []byte { return request(wireSpan(fieldLen(13, attribute(4, "k", v)))) },
	}
	for place, at := range places {
		for _, pattern := range []string{"a", "m", "am", "aam"} {
			t.Run(place+" "+pattern, func(t *testing.T) {
				fromBoth(t, at(nest(64, pattern)), func(t *testing.T, from func(Limits) (*Batch, error)) {
					if _, err := from(Limits{}); err != nil {
						t.Errorf("64 levels: %v", err)
					}
				})
				fromBoth(t, at(nest(65, pattern)), func(t *testing.T, from func(Limits) (*Batch, error)) {
					_, err := from(Limits{})
					expectLimit(t, err, "nesting of attribute values", 64, false)
				})
			})
		}
	}
}

// TestLimitOfDepthCannotBeLifted uses values that would need gigabytes of stack without the limit.
func TestLimitOfDepthCannotBeLifted(t *testing.T) {
	soak.SkipIfRaced(t)
	for _, pattern := range []string{"a", "m"} {
		deep := request(wireSpan(attribute(9, "k", nest(2_000_000, pattern))))
		_, err := FromOTLP(deep, Meta{}, Limits{})
		expectLimit(t, err, "nesting of attribute values", 64, false)
		_, err = FromOTLP(deep, Meta{}, unlimited())
		expectLimit(t, err, "nesting of attribute values", maxDepth, false)
		expectLimit(t, Walk(deep, discard{}), "nesting of attribute values", maxDepth, false)
	}
}

func TestDeepJSON(t *testing.T) {
	for name, text := range map[string]string{
		"arrays":         strings.Repeat("[", 100_000),
		"unknown member": `{"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}",
		"objects":        strings.Repeat(`{"a":`, 100_000),
		"values": `{"resourceSpans":[{"resource":{"attributes":[{"key":"k","value":` +
			strings.Repeat(`{"arrayValue":{"values":[`, 100_000),
		"unlimited, values": `{"resourceSpans":[{"resource":{"attributes":[{"key":"k","value":` +
			strings.Repeat(`{"arrayValue":{"values":[`, 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			lim, depth := Limits{}, 64
			if strings.HasPrefix(name, "unlimited") {
				lim, depth = unlimited(), maxDepth
			}
			_, err := FromJSON([]byte(text), Meta{}, lim)
			if text[0] == '[' {
				if !errors.Is(err, errJSONStart) {
					t.Errorf("got error %v", err)
				}
				return
			}
			expectLimit(t, err, "nesting of attribute values", depth, false)
		})
	}
}

// TestManyRepetitions merges repeated messages, which takes very long if each repetition copies the
// previous ones.
func TestManyRepetitions(t *testing.T) {
	soak.SkipIfRaced(t)
	const n = 1 << 20
	first := fieldLen(1, stringAttribute(1, "service.name", strings.Repeat("x", 1<<20)))
	b := fieldLen(1, first, bytes.Repeat(fieldLen(1, fieldVarint(2, 1)), n), fieldLen(2, fieldLen(2, wireSpan())))
	var w rewriter
	if err := Walk(b, &w); err != nil {
		t.Fatal(err)
	}
	if got, want := len(w.resource.Raw), 1<<20; got < want+2*n {
		t.Errorf("Raw has %d bytes, want more than %d", got, want+2*n)
	}
	scope := fieldLen(2, fieldLen(1, fieldText(1, strings.Repeat("x", 1<<20))), bytes.Repeat(fieldLen(1, fieldVarint(4, 1)), n))
	if _, err := FromOTLP(fieldLen(1, scope), Meta{}, Limits{}); err != nil {
		t.Fatal(err)
	}
}

// TestValidationKeepsNoLists: a list item takes two bytes on the wire and up to a hundred in
// memory.
func TestValidationKeepsNoLists(t *testing.T) {
	soak.SkipIfRaced(t)
	const n = 1 << 18
	span := cat(bytes.Repeat(fieldLen(9), n), bytes.Repeat(fieldLen(11), n-1), bytes.Repeat(fieldLen(13), n),
		fieldLen(11, bytes.Repeat(fieldLen(3), n)))
	resource := fieldLen(1, cat(bytes.Repeat(fieldLen(1), n-2), stringAttribute(1, "service.name", "cart"),
		stringAttribute(1, "service.name", "x")))
	b := fieldLen(1, resource, fieldLen(2, fieldLen(1, bytes.Repeat(fieldLen(3), n)), fieldLen(2, span)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	batch, err := FromOTLP(b, Meta{}, Limits{})
	runtime.ReadMemStats(&after)
	if err != nil || batch.Len() != 1 || batch.Services()[0].Service != "cart" {
		t.Fatalf("got %+v, %v", batch, err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("validating %d bytes allocated %d", len(b), got)
	}
	runtime.ReadMemStats(&before)
	if err := Walk(b, discard{}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	took, said := int(after.TotalAlloc-before.TotalAlloc), batch.WalkMemory()
	if said < took/4 || said > took*4 {
		t.Errorf("a walk allocated %d bytes, WalkMemory is %d", took, said)
	}
}

func TestDefaultLimits(t *testing.T) {
	if got := (Limits{}).orDefault(); got != DefaultLimits() {
		t.Errorf("got %+v", got)
	}
	if got := (Limits{Bytes: -1, Spans: -1, Depth: -1, Items: -1}).orDefault(); got != DefaultLimits() {
		t.Errorf("negative limits: got %+v", got)
	}
	set := Limits{Bytes: 1, Spans: 2, Depth: 3, Items: 4}
	if got := set.orDefault(); got != set {
		t.Errorf("got %+v, want %+v", got, set)
	}
}
