package uiapi

import (
	"encoding/hex"

	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// spanDetail is a span in full.
type spanDetail struct {
	id            otlpdata.SpanID
	SpanID        string        `json:"spanID"`
	ParentSpanID  string        `json:"parentSpanID"`
	TraceState    string        `json:"traceState"`
	Service       string        `json:"service"`
	Name          string        `json:"name"`
	Kind          string        `json:"kind"`
	Status        string        `json:"status"`
	StatusMessage string        `json:"statusMessage"`
	Start         route.Nanos   `json:"start"`
	Duration      uint64        `json:"duration"`
	Attributes    []attribute   `json:"attributes"`
	Resource      []attribute   `json:"resource"`
	Scope         scopeDetail   `json:"scope"`
	Events        []eventDetail `json:"events"`
	Links         []linkDetail  `json:"links"`
	LinkedFrom    []linkSource  `json:"linkedFrom"`
	Warnings      []string      `json:"warnings"`
}

type scopeDetail struct {
	Name       string      `json:"name"`
	Version    string      `json:"version"`
	Attributes []attribute `json:"attributes"`
}

type eventDetail struct {
	Name       string      `json:"name"`
	Time       route.Nanos `json:"time"`
	Attributes []attribute `json:"attributes"`
}

type linkDetail struct {
	TraceID    string      `json:"traceID"`
	SpanID     string      `json:"spanID"`
	TraceState string      `json:"traceState"`
	Attributes []attribute `json:"attributes"`
}

// linkSource is a span that links to another.
type linkSource struct {
	SpanID  string `json:"spanID"`
	Service string `json:"service"`
	Name    string `json:"name"`
}

// attribute is an attribute as text.
type attribute struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

// detail returns a span of the current resource and scope, without LinkedFrom.
func (d *details) detail(s *otlpdata.Span) spanDetail {
	ns, reversed := s.Duration()
	out := spanDetail{
		id: s.SpanID, SpanID: s.SpanID.String(), TraceState: s.TraceState, Service: d.service, Name: s.Name,
		Kind: kindName(s), Status: otlpdata.StatusName(s.StatusCode), StatusMessage: s.StatusMessage,
		Start: route.Nanos(s.Start), Duration: ns, Resource: d.resource, Scope: d.scope,
		Events: []eventDetail{}, Links: []linkDetail{}, Warnings: ownWarnings(s.Start, reversed),
	}
	if !s.ParentID.IsZero() {
		out.ParentSpanID = s.ParentID.String()
	}
	shown := make([]otlpdata.KeyValue, 0, len(s.Attributes))
	for _, kv := range s.Attributes {
		if kv.Key != adjust.WarningsKey || kv.Value.Kind() != otlpdata.ValueArray {
			shown = append(shown, kv)
			continue
		}
		for text := range kv.Value.Elements() {
			out.Warnings = append(out.Warnings, text.AsString())
		}
	}
	out.Attributes = attributesOf(shown)
	for i := range s.Events {
		e := &s.Events[i]
		out.Events = append(out.Events, eventDetail{e.Name, route.Nanos(e.Time), attributesOf(e.Attributes)})
	}
	for i := range s.Links {
		l := &s.Links[i]
		out.Links = append(out.Links, linkDetail{hex.EncodeToString(l.TraceID[:]), l.SpanID.String(), l.TraceState, attributesOf(l.Attributes)})
	}
	return out
}

// ownWarnings returns warnings about a span on its own.
func ownWarnings(start uint64, reversed bool) []string {
	out := []string{}
	if start == 0 {
		out = append(out, "span has no start time")
	}
	if reversed {
		out = append(out, "span has no end, or one before its start; its duration is unknown and counts as 0")
	}
	return out
}

func kindName(s *otlpdata.Span) string {
	if name := s.KindName(); name != "" {
		return name
	}
	return "unspecified"
}

func attributesOf(kvs []otlpdata.KeyValue) []attribute {
	out := make([]attribute, len(kvs))
	for i, kv := range kvs {
		out[i] = attribute{kv.Key, typeName(kv.Value.Kind()), kv.Value.AsString()}
	}
	return out
}

func typeName(k otlpdata.ValueKind) string {
	switch k {
	case otlpdata.ValueString:
		return "string"
	case otlpdata.ValueBool:
		return "bool"
	case otlpdata.ValueInt:
		return "int"
	case otlpdata.ValueDouble:
		return "double"
	case otlpdata.ValueBytes:
		return "bytes"
	case otlpdata.ValueArray:
		return "array"
	case otlpdata.ValueMap:
		return "kvlist"
	}
	return "empty"
}
