package uijson

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// warningsKey is the attribute that carries a span's warnings through OTLP; it is shown as warnings, not as a tag.
const warningsKey = "@jaeger@warnings"

// spanTags returns the tags of a span in the order in which they are stored, until it is called again, and adds the warnings that
// attributes carry.
func (c *collector) spanTags(s *otlpdata.Span, warnings *[]string) []otlpdata.KeyValue {
	tags := append(c.tags[:0], c.scopeTags...)
	tags = appendAttributes(tags, s.Attributes)
	tags = takeReserved(tags, warnings)
	if s.Name != "" && !utf8.ValidString(s.Name) {
		tags = appendTextTag(tags, otlpdata.InvalidSpanName, s.Name)
	}
	tags = appendTextTag(tags, "span.kind", s.KindName())
	switch s.StatusCode {
	case otlpdata.StatusOK:
		tags = appendTextTag(tags, "otel.status_code", "OK")
	case otlpdata.StatusError:
		tags = appendTextTag(tags, "otel.status_code", "ERROR")
		tags = append(tags, otlpdata.KeyValue{Key: "error", Value: otlpdata.BoolValue(true)})
	}
	tags = appendTextTag(tags, "otel.status_description", s.StatusMessage)
	c.tags = appendTextTag(tags, "w3c.tracestate", s.TraceState)
	return c.tags
}

// takeReserved removes the attribute that carries the flags, and moves the strings of the one that carries warnings to warnings.
func takeReserved(tags []otlpdata.KeyValue, warnings *[]string) []otlpdata.KeyValue {
	return slices.DeleteFunc(tags, func(kv otlpdata.KeyValue) bool {
		if kv.Key == otlpdata.FlagsAttribute {
			return true
		}
		if kv.Key != warningsKey || kv.Value.Kind() != otlpdata.ValueArray {
			return false
		}
		for w := range kv.Value.Elements() {
			*warnings = append(*warnings, w.AsString())
		}
		return true
	})
}

// eventFields returns what the log of an event lists, in the order in which it is shown, until it or spanTags is called again.
func (c *collector) eventFields(e *otlpdata.Event) []otlpdata.KeyValue {
	fields := c.tags[:0]
	if _, ok := otlpdata.Get(e.Attributes, "event"); !ok {
		fields = appendTextTag(fields, "event", e.Name)
	}
	c.tags = appendAttributes(fields, e.Attributes)
	if !c.opt.Raw {
		sortFields(c.tags)
	}
	return c.tags
}

// appendTextTag appends a string tag, unless there is nothing to say.
func appendTextTag(tags []otlpdata.KeyValue, key, value string) []otlpdata.KeyValue {
	if value == "" {
		return tags
	}
	return append(tags, otlpdata.KeyValue{Key: key, Value: otlpdata.StringValue(value)})
}

// appendAttributes appends attributes with keys that can be shown.
func appendAttributes(dst, attributes []otlpdata.KeyValue) []otlpdata.KeyValue {
	n := len(dst)
	dst = append(dst, attributes...)
	nameInvalidKeys(dst[n:])
	return dst
}

// nameInvalidKeys changes keys that cannot be shown. Values that cannot be shown as text are left to appendTag; that the value of a key
// that is not UTF-8 holds this key makes it one of them.
func nameInvalidKeys(attributes []otlpdata.KeyValue) {
	invalid := 0
	for i := range attributes {
		kv := &attributes[i]
		if !utf8.ValidString(kv.Key) {
			invalid++
			text := kv.Key + ":" + rawText(kv.Value)
			*kv = otlpdata.KeyValue{Key: "invalid-tag-key-" + strconv.Itoa(invalid), Value: otlpdata.StringValue(text)}
		}
	}
}

// rawText is Value.AsString, but bytes are left as they are.
func rawText(v otlpdata.Value) string {
	if v.Kind() == otlpdata.ValueBytes {
		return string(v.Bytes())
	}
	return v.AsString()
}
