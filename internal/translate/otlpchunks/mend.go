package otlpchunks

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// What is stored need not be what clients can read: strict decoders of proto3 refuse a message with a string that is not UTF-8, and with it
// all of its spans. Such strings get U+FFFD, and a list or map with one becomes its JSON. The attribute that carries native flags is no
// attribute that clients see.

// presentable reports whether attributes can be shown as they are.
func presentable(kvs []otlpdata.KeyValue) bool {
	for i := range kvs {
		kv := &kvs[i]
		if !utf8.ValidString(kv.Key) || !isText(kv.Value) || kv.Key == otlpdata.FlagsAttribute {
			return false
		}
	}
	return true
}

// isText reports whether all strings in a value are UTF-8.
func isText(v otlpdata.Value) bool {
	switch v.Kind() {
	case otlpdata.ValueString:
		return utf8.ValidString(v.Encoded())
	case otlpdata.ValueArray:
		for e := range v.Elements() {
			if !isText(e) {
				return false
			}
		}
	case otlpdata.ValueMap:
		for kv := range v.Entries() {
			if !utf8.ValidString(kv.Key) || !isText(kv.Value) {
				return false
			}
		}
	}
	return true
}

func presentableSpan(s *otlpdata.Span) bool {
	for i := range s.Events {
		if e := &s.Events[i]; !utf8.ValidString(e.Name) || !presentable(e.Attributes) {
			return false
		}
	}
	for i := range s.Links {
		if l := &s.Links[i]; !utf8.ValidString(l.TraceState) || !presentable(l.Attributes) {
			return false
		}
	}
	return utf8.ValidString(s.Name) && utf8.ValidString(s.TraceState) && utf8.ValidString(s.StatusMessage) && presentable(s.Attributes)
}

func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func mended(kvs []otlpdata.KeyValue) []otlpdata.KeyValue {
	out := make([]otlpdata.KeyValue, 0, len(kvs))
	for _, kv := range kvs {
		if kv.Key == otlpdata.FlagsAttribute {
			continue
		}
		kv.Key = text(kv.Key)
		switch {
		case isText(kv.Value):
		case kv.Value.Kind() == otlpdata.ValueString:
			kv.Value = otlpdata.StringValue(text(kv.Value.Encoded()))
		default:
			kv.Value = otlpdata.StringValue(string(kv.Value.AppendJSON(nil)))
		}
		out = append(out, kv)
	}
	return out
}

func mendedSpan(s *otlpdata.Span) *otlpdata.Span {
	out := *s
	out.Raw = nil
	out.Name, out.TraceState, out.StatusMessage = text(s.Name), text(s.TraceState), text(s.StatusMessage)
	out.Attributes = mended(s.Attributes)
	out.Events, out.Links = slices.Clone(s.Events), slices.Clone(s.Links)
	for i := range out.Events {
		e := &out.Events[i]
		e.Name, e.Attributes = text(e.Name), mended(e.Attributes)
	}
	for i := range out.Links {
		l := &out.Links[i]
		l.TraceState, l.Attributes = text(l.TraceState), mended(l.Attributes)
	}
	return &out
}
