package native

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
)

// decodeRequest decodes a request with a strict proto3 decoder.
func decodeRequest(t testing.TB, request []byte) *api_v2.Batch {
	t.Helper()
	var r api_v2.PostSpansRequest
	if err := proto.Unmarshal(request, &r); err != nil {
		t.Fatalf("rejected by a strict decoder: %v", err)
	}
	return r.GetBatch()
}

// describe writes a batch in lines, with everything that is in it.
func describe(b *api_v2.Batch) string {
	var w strings.Builder
	describeProcess(&w, "process", b.GetProcess())
	for _, s := range b.GetSpans() {
		describeSpan(&w, s)
	}
	return w.String()
}

func describeProcess(w *strings.Builder, what string, p *api_v2.Process) {
	if p == nil {
		return
	}
	fmt.Fprintf(w, "%s %q\n", what, p.GetServiceName())
	describeTags(w, "    ", p.GetTags())
}

func describeSpan(w *strings.Builder, s *api_v2.Span) {
	fmt.Fprintf(w, "span %q trace=%x id=%x flags=%d\n", s.GetOperationName(), s.GetTraceId(), s.GetSpanId(), s.GetFlags())
	fmt.Fprintf(w, "  start=%d.%09d duration=%d.%09d\n", s.GetStartTime().GetSeconds(), s.GetStartTime().GetNanos(),
		s.GetDuration().GetSeconds(), s.GetDuration().GetNanos())
	for _, r := range s.GetReferences() {
		fmt.Fprintf(w, "  %s trace=%x span=%x\n", r.GetRefType(), r.GetTraceId(), r.GetSpanId())
	}
	describeTags(w, "  ", s.GetTags())
	for _, l := range s.GetLogs() {
		fmt.Fprintf(w, "  log %d.%09d\n", l.GetTimestamp().GetSeconds(), l.GetTimestamp().GetNanos())
		describeTags(w, "    ", l.GetFields())
	}
	describeProcess(w, "  process", s.GetProcess())
	for _, warning := range s.GetWarnings() {
		fmt.Fprintf(w, "  warning %q\n", warning)
	}
}

// describeTags shows the values of all types, so that a value in the wrong field is visible.
func describeTags(w *strings.Builder, indent string, tags []*api_v2.KeyValue) {
	for _, kv := range tags {
		fmt.Fprintf(w, "%s%s %q", indent, kv.GetVType(), kv.GetKey())
		if kv.GetVStr() != "" {
			fmt.Fprintf(w, " %q", kv.GetVStr())
		}
		if kv.GetVBool() {
			w.WriteString(" true")
		}
		if kv.GetVInt64() != 0 {
			fmt.Fprintf(w, " %d", kv.GetVInt64())
		}
		if kv.GetVFloat64() != 0 {
			fmt.Fprintf(w, " %g", kv.GetVFloat64())
		}
		if len(kv.GetVBinary()) > 0 {
			fmt.Fprintf(w, " %x", kv.GetVBinary())
		}
		w.WriteByte('\n')
	}
}

// resolved describes the spans of a batch, each with its own process or the process of the batch.
func resolved(b *api_v2.Batch) []string {
	var spans []string
	for _, s := range b.GetSpans() {
		if s.Process == nil {
			s.Process = b.GetProcess()
		}
		var w strings.Builder
		describeSpan(&w, s)
		spans = append(spans, w.String())
	}
	return spans
}
