package otlpchunks

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Strict proto3 decoders reject a message with a string that is not UTF-8, together with all of its
// spans. So for users, invalid UTF-8 is replaced with U+FFFD, and an array or map that contains it
// becomes its JSON. The attribute with Jaeger's flags is left out.

// arePresentable reports whether attributes need no repair.
func arePresentable(kvs []otlpdata.KeyValue) bool {
	for i := range kvs {
		kv := &kvs[i]
		if !utf8.ValidString(kv.Key) || !isValidText(kv.Value) || kv.Key == otlpdata.FlagsAttribute {
			return false
		}
	}
	return true
}

// isValidText reports whether all strings in a value are UTF-8.
func isValidText(v otlpdata.Value) bool {
	switch v.Kind() {
	case otlpdata.ValueString:
		return utf8.ValidString(v.Encoded())
	case otlpdata.ValueArray:
		for e := range v.Elements() {
			if !isValidText(e) {
				return false
			}
		}
	case otlpdata.ValueMap:
		for kv := range v.Entries() {
			if !utf8.ValidString(kv.Key) || !isValidText(kv.Value) {
				return false
			}
		}
	}
	return true
}

func isPresentable(s *otlpdata.Span) bool {
	for i := range s.Events {
		if e := &s.Events[i]; !utf8.ValidString(e.Name) || !arePresentable(e.Attributes) {
			return false
		}
	}
	for i := range s.Links {
		if l := &s.Links[i]; !utf8.ValidString(l.TraceState) || !arePresentable(l.Attributes) {
			return false
		}
	}
	return utf8.ValidString(s.Name) && utf8.ValidString(s.TraceState) && utf8.ValidString(s.StatusMessage) && arePresentable(s.Attributes)
}

func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func repairedAttributes(kvs []otlpdata.KeyValue) []otlpdata.KeyValue {
	out := make([]otlpdata.KeyValue, 0, len(kvs))
	for _, kv := range kvs {
		if kv.Key == otlpdata.FlagsAttribute {
			continue
		}
		kv.Key = validText(kv.Key)
		switch {
		case isValidText(kv.Value):
		case kv.Value.Kind() == otlpdata.ValueString:
			kv.Value = otlpdata.StringValue(validText(kv.Value.Encoded()))
		default:
			kv.Value = otlpdata.StringValue(string(kv.Value.AppendJSON(nil)))
		}
		out = append(out, kv)
	}
	return out
}

func repairedSpan(s *otlpdata.Span) *otlpdata.Span {
	out := *s
	out.Raw = nil
	out.Name, out.TraceState, out.StatusMessage = validText(s.Name), validText(s.TraceState), validText(s.StatusMessage)
	out.Attributes = repairedAttributes(s.Attributes)
	out.Events, out.Links = slices.Clone(s.Events), slices.Clone(s.Links)
	for i := range out.Events {
		e := &out.Events[i]
		e.Name, e.Attributes = validText(e.Name), repairedAttributes(e.Attributes)
	}
	for i := range out.Links {
		l := &out.Links[i]
		l.TraceState, l.Attributes = validText(l.TraceState), repairedAttributes(l.Attributes)
	}
	return &out
}
