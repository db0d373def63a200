package uijson

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// spanTags returns the tags of a span until it or eventFields is called again, and adds the warnings that attributes carry.
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

// takeReserved removes the attribute that carries the flags, and moves the strings of the one that carries warnings to warnings.
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

// eventFields returns what the log of an event lists, in the order in which it is shown, until it or spanTags is called again.
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

// sortFields sorts the fields of a log by key, behind the one that says what happened.
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
