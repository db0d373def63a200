package uijson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/internal/translate/uijson"
)

// load reads a recording: a stream of OTLP/JSON documents.
func load(t *testing.T, file string) []ptrace.Traces {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []ptrace.Traces
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		var doc json.RawMessage
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(doc)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, td)
	}
}

// TestRecordings compares the JSON of recorded traces with an independent translation from pdata
// objects.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/otlp-*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		docs := load(t, file)
		tr := show(t, uijson.Options{Options: adjust.Options{Raw: true}}, docs...)
		var want []span
		var processes []process
		for _, td := range docs {
			for _, rs := range td.ResourceSpans().All() {
				for _, ss := range rs.ScopeSpans().All() {
					for _, s := range ss.Spans().All() {
						want = append(want, expectSpan(ss.Scope(), s))
						processes = append(processes, expectProcess(rs.Resource().Attributes()))
					}
				}
			}
		}
		equal(t, file+": number of spans", len(tr.Spans), len(want))
		for i, got := range tr.Spans {
			equal(t, file+": process", tr.Processes[got.ProcessID], processes[i])
			got.ProcessID = ""
			equal(t, file+": span", got, want[i])
		}
		equal(t, file+": adjusted spans", len(show(t, uijson.Options{}, docs...).Spans), len(want))
	}
}

func expectSpan(scope pcommon.InstrumentationScope, s ptrace.Span) span {
	out := span{
		TraceID: s.TraceID().String(), SpanID: s.SpanID().String(), OperationName: s.Name(),
		Flags:     int(s.Flags() & 1),
		StartTime: uint64(s.StartTimestamp()) / 1000, Duration: uint64(s.EndTimestamp()-s.StartTimestamp()) / 1000,
		References: []reference{}, Tags: []tag{}, Logs: []logEntry{},
	}
	str := func(key, value string) {
		if value != "" {
			out.Tags = append(out.Tags, tag{key, "string", value})
		}
	}
	str("otel.scope.name", scope.Name())
	str("otel.scope.version", scope.Version())
	out.Tags = append(out.Tags, expectTags(s.Attributes())...)
	if s.Kind() != ptrace.SpanKindUnspecified {
		str("span.kind", map[ptrace.SpanKind]string{1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}[s.Kind()])
	}
	switch s.Status().Code() {
	case ptrace.StatusCodeOk:
		str("otel.status_code", "OK")
	case ptrace.StatusCodeError:
		str("otel.status_code", "ERROR")
		out.Tags = append(out.Tags, tag{"error", "bool", true})
	}
	str("otel.status_description", s.Status().Message())
	str("w3c.tracestate", s.TraceState().AsRaw())
	if !s.ParentSpanID().IsEmpty() {
		out.References = append(out.References, reference{"CHILD_OF", out.TraceID, s.ParentSpanID().String()})
	}
	for _, l := range s.Links().All() {
		out.References = append(out.References, reference{"FOLLOWS_FROM", l.TraceID().String(), l.SpanID().String()})
	}
	for _, e := range s.Events().All() {
		fields := []tag{{"event", "string", e.Name()}}
		out.Logs = append(out.Logs, logEntry{uint64(e.Timestamp()) / 1000, append(fields, expectTags(e.Attributes())...)})
	}
	return out
}

func expectProcess(attributes pcommon.Map) process {
	name, _ := attributes.Get("service.name")
	rest := pcommon.NewMap()
	for k, v := range attributes.All() {
		if k != "service.name" {
			v.CopyTo(rest.PutEmpty(k))
		}
	}
	return process{name.Str(), expectTags(rest)}
}

func expectTags(attributes pcommon.Map) []tag {
	out := []tag{}
	for k, v := range attributes.All() {
		switch v.Type() {
		case pcommon.ValueTypeInt:
			out = append(out, tag{k, "int64", json.Number(v.AsString())})
		case pcommon.ValueTypeBool:
			out = append(out, tag{k, "bool", v.Bool()})
		case pcommon.ValueTypeDouble:
			out = append(out, tag{k, "float64", json.Number(v.AsString())})
		default:
			out = append(out, tag{k, "string", v.AsString()})
		}
	}
	return out
}
