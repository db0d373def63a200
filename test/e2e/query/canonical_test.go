package query_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jaegertracing/jaeger-idl/model/v1"
	"github.com/jaegertracing/jaeger-idl/proto-gen/api_v2"

	"github.com/tracing-backend/tracing/test/harness"
)

// canonical returns a span as one line of text, which is the same for every API.
func canonical(s *harness.UISpan, p *harness.UIProcess) string {
	var refs, logs []string
	for _, r := range s.References {
		refs = append(refs, fmt.Sprint(r))
	}
	for _, l := range s.Logs {
		logs = append(logs, fmt.Sprint(l.Timestamp, harness.TagStrings(l.Fields)))
	}
	return fmt.Sprint(s.TraceID, s.SpanID, s.Flags, s.OperationName, s.StartTime, s.Duration, refs, harness.TagStrings(s.Tags), logs,
		p.ServiceName, harness.TagStrings(p.Tags), s.Warnings)
}

// canonicalJSON returns the spans of the JSON API as sorted lines.
func canonicalJSON(traces []harness.UITrace) (lines []string) {
	for _, tr := range traces {
		for _, s := range tr.Spans {
			for i := range s.Tags {
				normalize(&s.Tags[i])
			}
			for _, l := range s.Logs {
				for i := range l.Fields {
					normalize(&l.Fields[i])
				}
			}
			p := tr.Processes[s.ProcessID]
			lines = append(lines, canonical(&s, &p))
		}
	}
	slices.Sort(lines)
	return lines
}

// normalize writes numbers and strings in the syntax of Go.
func normalize(t *harness.UITag) {
	switch t.Type {
	case "float64":
		if f, err := strconv.ParseFloat(string(t.Value), 64); err == nil {
			t.Value = json.RawMessage(fmt.Sprint(f))
		}
	case "int64":
		t.Value = json.RawMessage(strings.Trim(string(t.Value), `"`))
	case "string":
		var s string
		if json.Unmarshal(t.Value, &s) == nil {
			t.Value = json.RawMessage(strconv.Quote(s))
		}
	}
}

// canonicalChunks returns the spans of the gRPC API as sorted lines.
func canonicalChunks(chunks []*api_v2.SpansResponseChunk) (lines []string) {
	for _, c := range chunks {
		for i := range c.Spans {
			s := &c.Spans[i]
			out := harness.UISpan{
				TraceID: s.TraceID.String(), SpanID: s.SpanID.String(), Flags: uint32(s.Flags), OperationName: s.OperationName,
				StartTime: s.StartTime.UnixMicro(), Duration: s.Duration.Microseconds(), Tags: jaegerTags(s.Tags), Warnings: s.Warnings,
			}
			for _, r := range s.References {
				out.References = append(out.References, harness.UIReference{RefType: r.RefType.String(),
					TraceID: r.TraceID.String(), SpanID: r.SpanID.String()})
			}
			for _, l := range s.Logs {
				out.Logs = append(out.Logs, harness.UILog{Timestamp: l.Timestamp.UnixMicro(), Fields: jaegerTags(l.Fields)})
			}
			lines = append(lines, canonical(&out, &harness.UIProcess{ServiceName: s.Process.ServiceName, Tags: jaegerTags(s.Process.Tags)}))
		}
	}
	slices.Sort(lines)
	return lines
}

func jaegerTags(kvs []model.KeyValue) (tags []harness.UITag) {
	for _, kv := range kvs {
		t := harness.UITag{Key: kv.Key, Type: strings.ToLower(kv.VType.String())}
		switch kv.VType {
		case model.ValueType_STRING:
			t.Value = json.RawMessage(strconv.Quote(kv.VStr))
		case model.ValueType_BINARY:
			t.Value = json.RawMessage(strconv.Quote(base64.StdEncoding.EncodeToString(kv.VBinary)))
		default:
			t.Value = json.RawMessage(fmt.Sprint(kv.Value()))
		}
		tags = append(tags, t)
	}
	return tags
}
