package query_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestRealTraces sends captured traces of real systems and compares every span that is read back
// with the captured one, which pdata decodes.
func TestRealTraces(t *testing.T) {
	soak.SkipIfRaced(t)
	files, err := filepath.Glob("testdata/real-traces/*.json.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in testdata/real-traces: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			p := inprocess.Start(t)
			want := map[string][]string{} // trace id to spans in text form
			for _, doc := range documents(t, file) {
				if status, body := p.PostOTLP("application/json", string(doc)); status != 200 {
					t.Fatalf("%d %s", status, body)
				}
				td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(doc)
				if err != nil {
					t.Fatal(err)
				}
				describeAll(td, want)
			}
			spans := 0
			for id, w := range want {
				var got []string
				for _, tr := range inprocess.Ask[[]harness.UITrace](p, "/api/traces/"+id) {
					for _, s := range tr.Spans {
						got = append(got, describeUI(s, tr.Processes[s.ProcessID]))
					}
				}
				slices.Sort(got)
				slices.Sort(w)
				w = slices.Compact(w) // duplicates are returned once
				if !slices.Equal(got, w) {
					t.Errorf("trace %s: %d spans, want %d%s", id, len(got), len(w), firstDifference(got, w))
				}
				spans += len(w)
			}
			t.Logf("%d traces, %d spans", len(want), spans)
			harness.CheckAccounting(t, p.AdminURL())
		})
	}
}

func firstDifference(got, want []string) string {
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			g := "nothing"
			if i < len(got) {
				g = got[i]
			}
			return fmt.Sprintf("\n got %s\nwant %s", g, want[i])
		}
	}
	return ""
}

// documents returns the trace requests of a stream of OTLP/JSON documents. It skips logs and
// metrics.
func documents(t *testing.T, file string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	var docs [][]byte
	for dec := json.NewDecoder(z); ; {
		var doc json.RawMessage
		if err := dec.Decode(&doc); err == io.EOF {
			return docs
		} else if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(doc, []byte(`"resourceSpans"`)) {
			docs = append(docs, doc)
		}
	}
}

// describeAll adds the descriptions of all spans, by trace id.
func describeAll(td ptrace.Traces, into map[string][]string) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				id := s.TraceID().String()
				into[id] = append(into[id], describePdata(s, ss.Scope(), rs.Resource()))
			}
		}
	}
}

// description is a span in the terms of the JSON API, with everything in a fixed order.
type description struct {
	ID, Name, Service string
	Start, Duration   int64
	References        []harness.UIReference
	Tags, ProcessTags []string
	Logs              [][]string
}

func (d description) String() string {
	b, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func describeUI(s harness.UISpan, p harness.UIProcess) string {
	d := description{ID: s.SpanID, Name: s.OperationName, Service: p.ServiceName, Start: s.StartTime, Duration: s.Duration,
		References: s.References, Tags: harness.TagStrings(s.Tags), ProcessTags: harness.TagStrings(p.Tags)}
	for _, l := range s.Logs {
		d.Logs = append(d.Logs, append([]string{fmt.Sprint(l.Timestamp)}, harness.TagStrings(l.Fields)...))
	}
	return d.String()
}

func describePdata(s ptrace.Span, scope pcommon.InstrumentationScope, res pcommon.Resource) string {
	d := description{ID: s.SpanID().String(), Name: s.Name(), Start: int64(s.StartTimestamp()) / 1000, References: []harness.UIReference{},
		Duration: int64(s.EndTimestamp()-s.StartTimestamp()) / 1000, Tags: attributeTags(s.Attributes())}
	service, _ := res.Attributes().Get("service.name")
	d.Service = service.Str()
	rest := pcommon.NewMap()
	res.Attributes().CopyTo(rest)
	rest.Remove("service.name")
	d.ProcessTags = attributeTags(rest)
	for key, v := range map[string]string{"otel.scope.name": scope.Name(), "otel.scope.version": scope.Version(),
		"span.kind":               map[ptrace.SpanKind]string{1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}[s.Kind()],
		"otel.status_code":        map[ptrace.StatusCode]string{1: "OK", 2: "ERROR"}[s.Status().Code()],
		"otel.status_description": s.Status().Message(), "w3c.tracestate": s.TraceState().AsRaw()} {
		if v != "" {
			d.Tags = append(d.Tags, key+":string="+harness.Quote(v))
		}
	}
	if s.Status().Code() == ptrace.StatusCodeError {
		d.Tags = append(d.Tags, "error:bool=true")
	}
	slices.Sort(d.Tags)
	if !s.ParentSpanID().IsEmpty() {
		d.References = append(d.References, harness.UIReference{RefType: "CHILD_OF", TraceID: s.TraceID().String(),
			SpanID: s.ParentSpanID().String()})
	}
	for _, l := range s.Links().All() {
		ref := harness.UIReference{RefType: "FOLLOWS_FROM", TraceID: l.TraceID().String(), SpanID: l.SpanID().String()}
		if len(d.References) > 0 && ref.SpanID == d.References[0].SpanID && ref.TraceID == d.References[0].TraceID {
			d.References[0].RefType = ref.RefType // the parent reference takes the link's type
			continue
		}
		d.References = append(d.References, ref)
	}
	for _, e := range s.Events().All() {
		fields := attributeTags(e.Attributes())
		if _, has := e.Attributes().Get("event"); e.Name() != "" && !has {
			fields = append(fields, "event:string="+harness.Quote(e.Name()))
		}
		slices.Sort(fields)
		d.Logs = append(d.Logs, append([]string{fmt.Sprint(int64(e.Timestamp()) / 1000)}, fields...))
	}
	return d.String()
}

func attributeTags(m pcommon.Map) []string {
	tags := []string{}
	for k, v := range m.All() {
		switch v.Type() {
		case pcommon.ValueTypeStr:
			tags = append(tags, k+":string="+harness.Quote(v.Str()))
		case pcommon.ValueTypeBool:
			tags = append(tags, fmt.Sprintf("%s:bool=%t", k, v.Bool()))
		case pcommon.ValueTypeInt:
			tags = append(tags, fmt.Sprintf("%s:int64=%d", k, v.Int()))
		case pcommon.ValueTypeDouble:
			tags = append(tags, fmt.Sprintf("%s:float64=%v", k, v.Double()))
		case pcommon.ValueTypeBytes:
			tags = append(tags, k+":binary="+hex.EncodeToString(v.Bytes().AsRaw()))
		default:
			tags = append(tags, k+":string="+harness.Quote(v.AsString()))
		}
	}
	slices.Sort(tags)
	return tags
}
