package uijson

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// spanTags returns the tags of a span and adds its warning attributes to the warnings. The result
// is valid until the next call of spanTags or eventFields.
func (w *writer) spanTags(s *otlpdata.Span) []otlpdata.KeyValue {
	tags := append(w.tags[:0], w.scopeTags...)
	tags = appendAttributes(tags, s.Attributes)
	tags = w.takeReserved(tags)
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
	w.tags = appendTextTag(tags, "w3c.tracestate", s.TraceState)
	if !w.raw {
		adjust.SortAttributes(w.tags)
	}
	return w.tags
}

// takeReserved removes the attribute with the flags, and moves the strings of the warnings
// attribute to w.warnings.
func (w *writer) takeReserved(tags []otlpdata.KeyValue) []otlpdata.KeyValue {
	return slices.DeleteFunc(tags, func(kv otlpdata.KeyValue) bool {
		if kv.Key == otlpdata.FlagsAttribute {
			return true
		}
		if kv.Key != adjust.WarningsKey || kv.Value.Kind() != otlpdata.ValueArray {
			return false
		}
		for text := range kv.Value.Elements() {
			w.warnings = append(w.warnings, text.AsString())
		}
		return true
	})
}

// eventFields returns the fields of the log for an event, in the order in which they are shown. The
// result is valid until the next call of eventFields or spanTags.
func (w *writer) eventFields(e *otlpdata.Event) []otlpdata.KeyValue {
	fields := w.tags[:0]
	if _, ok := otlpdata.Get(e.Attributes, "event"); !ok {
		fields = appendTextTag(fields, "event", e.Name)
	}
	w.tags = appendAttributes(fields, e.Attributes)
	if !w.raw {
		sortFields(w.tags)
	}
	return w.tags
}

// sortFields sorts the fields of a log by key, except that the field `event` comes first.
func sortFields(fields []otlpdata.KeyValue) {
	isEvent := func(kv otlpdata.KeyValue) bool { return kv.Key == "event" && kv.Value.Kind() == otlpdata.ValueString }
	if i := slices.IndexFunc(fields, isEvent); i >= 0 {
		e := fields[i]
		copy(fields[1:i+1], fields[:i])
		fields[0] = e
		fields = fields[1:]
	}
	adjust.SortAttributes(fields)
}

// appendTextTag appends a string tag, unless the value is empty.
func appendTextTag(tags []otlpdata.KeyValue, key, value string) []otlpdata.KeyValue {
	if value == "" {
		return tags
	}
	return append(tags, otlpdata.KeyValue{Key: key, Value: otlpdata.StringValue(value)})
}

// appendAttributes appends attributes with valid keys.
func appendAttributes(dst, attributes []otlpdata.KeyValue) []otlpdata.KeyValue {
	n := len(dst)
	dst = append(dst, attributes...)
	nameInvalidKeys(dst[n:])
	return dst
}

// nameInvalidKeys replaces keys that are not UTF-8. The new value contains the original key, so it
// is not UTF-8 either and appendTag shows it as binary.
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

// rawText is Value.AsString, except that bytes are returned unchanged.
func rawText(v otlpdata.Value) string {
	if v.Kind() == otlpdata.ValueBytes {
		return string(v.Bytes())
	}
	return v.AsString()
}
