package uijson

import (
	"strconv"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// warningsKey is the attribute that carries a span's warnings through OTLP; it is shown as warnings, not as a tag.
const warningsKey = "@jaeger@warnings"

// tags returns the tags of a span in the order in which they are shown, and adds the warnings that its attributes carry.
func (c *collector) tags(s *otlpdata.Span, warnings []string) ([]otlpdata.KeyValue, []string) {
	const derived = 6 // what may follow the attributes
	tags := make([]otlpdata.KeyValue, len(c.scopeTags), len(c.scopeTags)+len(s.Attributes)+derived)
	copy(tags, c.scopeTags)
	tags = appendAttributes(tags, s.Attributes)
	tags, warnings = takeWarnings(tags, len(c.scopeTags), warnings)
	if s.Name != "" && !utf8.ValidString(s.Name) {
		tags = appendText(tags, otlpdata.InvalidSpanName, s.Name)
	}
	tags = appendText(tags, "span.kind", s.KindName())
	switch s.StatusCode {
	case otlpdata.StatusOK:
		tags = appendText(tags, "otel.status_code", "OK")
	case otlpdata.StatusError:
		tags = appendText(tags, "otel.status_code", "ERROR")
		tags = append(tags, otlpdata.KeyValue{Key: "error", Value: otlpdata.BoolValue(true)})
	}
	tags = appendText(tags, "otel.status_description", s.StatusMessage)
	return appendText(tags, "w3c.tracestate", s.TraceState), warnings
}

// takeWarnings moves the strings of the warnings attribute from tags[from:] to warnings.
func takeWarnings(tags []otlpdata.KeyValue, from int, warnings []string) ([]otlpdata.KeyValue, []string) {
	kept := tags[:from]
	for _, kv := range tags[from:] {
		if kv.Key != warningsKey || kv.Value.Kind() != otlpdata.ValueArray {
			kept = append(kept, kv)
			continue
		}
		for w := range kv.Value.Elements() {
			warnings = append(warnings, w.AsString())
		}
	}
	return kept, warnings
}

// appendText appends a string tag, unless there is nothing to say.
func appendText(tags []otlpdata.KeyValue, key, value string) []otlpdata.KeyValue {
	if value == "" {
		return tags
	}
	return append(tags, otlpdata.KeyValue{Key: key, Value: otlpdata.StringValue(value)})
}

// appendAttributes appends attributes with keys that can be shown. Values that cannot be shown as text are left to appendTag; that the
// value of a key that is not UTF-8 holds this key makes it one of them.
func appendAttributes(dst, attributes []otlpdata.KeyValue) []otlpdata.KeyValue {
	invalid := 0
	for _, kv := range attributes {
		if !utf8.ValidString(kv.Key) {
			invalid++
			text := kv.Key + ":" + rawText(kv.Value)
			kv = otlpdata.KeyValue{Key: "invalid-tag-key-" + strconv.Itoa(invalid), Value: otlpdata.StringValue(text)}
		}
		dst = append(dst, kv)
	}
	return dst
}

// rawText is Value.AsString, but bytes are left as they are.
func rawText(v otlpdata.Value) string {
	if v.Kind() == otlpdata.ValueBytes {
		return string(v.Bytes())
	}
	return v.AsString()
}
