package uijson_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/internal/translate/uijson"
)

// tree returns the spans in the form `id<parent`, with short ids.
func tree(tr trace) string {
	var out []string
	for _, s := range tr.Spans {
		line := short(s.SpanID)
		if len(s.References) > 0 {
			line += "<" + short(s.References[0].SpanID)
		}
		out = append(out, line)
	}
	return strings.Join(out, " ")
}

func short(id string) string {
	if id = strings.TrimLeft(id, "0"); id == "" {
		return "0"
	}
	return id
}

func TestServerSpansGetTheirOwnID(t *testing.T) {
	f := func(want string, spans ...string) {
		t.Helper()
		td := ptrace.NewTraces()
		ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
		for _, in := range spans {
			var kind string
			var id, parent byte
			if _, err := fmt.Sscanf(in, "%s %d %d", &kind, &id, &parent); err != nil {
				t.Fatal(err)
			}
			s := add(ss, id, parent)
			s.SetKind(map[string]ptrace.SpanKind{"c": ptrace.SpanKindClient, "s": ptrace.SpanKindServer}[kind])
			s.SetName(in)
		}
		equal(t, "tree", tree(show(t, uijson.Options{}, td)), want)
	}
	f("1 2<1 3<2 4<3", "- 1 0", "c 2 1", "s 2 1", "- 4 2") // the child becomes a child of the server
	f("1 2<1 4<2 3<4", "- 1 0", "c 2 1", "s 2 1", "s 3 2") // so does another server
	f("2 1<2", "s 2 0", "s 1 2")                           // no client, nothing shared
	f("2 1<2", "c 2 0", "s 1 2")                           // nothing shared
	f("2 1<2 3<2 4<3", "c 2 0", "s 2 0", "s 2 1", "- 4 2") // two servers: the last takes the children
	f("0 0 5", "c 0 0", "s 0 0", "- 5 0")                  // zero is not a shared id and not a parent
}

func TestRawKeepsSharedIDs(t *testing.T) {
	td, s := one()
	s.SetKind(ptrace.SpanKindClient)
	add(td.ResourceSpans().At(0).ScopeSpans().At(0), 1, 0).SetKind(ptrace.SpanKindServer)
	equal(t, "tree", tree(show(t, raw, td)), "1 1")
}

func TestDuplicatesAreDropped(t *testing.T) {
	f := func(want int, change func(a, b ptrace.Span)) {
		t.Helper()
		td, a := one()
		b := add(td.ResourceSpans().At(0).ScopeSpans().At(0), 1, 0)
		for _, s := range []ptrace.Span{a, b} {
			s.Attributes().PutStr("k", "v")
			s.Attributes().PutStr("l", "v")
			s.Events().AppendEmpty()
		}
		change(a, b)
		equal(t, "spans", len(show(t, uijson.Options{}, td).Spans), want)
		equal(t, "raw spans", len(show(t, raw, td).Spans), 2)
	}
	f(1, func(_, _ ptrace.Span) {})
	f(1, func(a, _ ptrace.Span) { // the order of attributes is ignored
		a.Attributes().Clear()
		a.Attributes().PutStr("l", "v")
		a.Attributes().PutStr("k", "v")
	})
	f(1, func(a, b ptrace.Span) { a.SetSpanID(pcommon.SpanID{}); b.SetSpanID(pcommon.SpanID{}) })
	f(2, func(a, _ ptrace.Span) { a.SetSpanID(pcommon.SpanID{1}) })
	f(2, func(a, _ ptrace.Span) { a.SetStartTimestamp(a.StartTimestamp() - 1) }) // the same microsecond
	f(2, func(a, _ ptrace.Span) { a.SetEndTimestamp(a.EndTimestamp() + 1) })
	f(2, func(a, _ ptrace.Span) { a.Events().At(0).SetTimestamp(1) })
	f(2, func(a, _ ptrace.Span) { a.SetKind(ptrace.SpanKindClient) })
}

func TestDuplicatesWithSharedIDsAreDropped(t *testing.T) {
	td, s := one()
	s.SetKind(ptrace.SpanKindClient)
	ss := td.ResourceSpans().At(0).ScopeSpans().At(0)
	add(ss, 1, 0).SetKind(ptrace.SpanKindServer)
	add(ss, 1, 0).SetKind(ptrace.SpanKindServer)
	equal(t, "tree", tree(show(t, uijson.Options{}, td)), "1 2<1")
}

func TestEmptyLinksAreRemoved(t *testing.T) {
	td, s := one()
	s.Links().AppendEmpty()
	s.Links().AppendEmpty().SetTraceID(pcommon.TraceID{15: 1})
	s.Links().AppendEmpty().SetSpanID(pcommon.SpanID{7: 1})
	got := show(t, uijson.Options{}, td).Spans[0]
	equal(t, "references", got.References, []reference{{"FOLLOWS_FROM", "0000000000000001", "0000000000000000"}})
	equal(t, "warnings", got.Warnings, []string{"Invalid span link removed", "Invalid span link removed"})
	equal(t, "raw references", len(show(t, raw, td).Spans[0].References), 3)
}

func TestAddressesThatAreNumbers(t *testing.T) {
	td, s := one()
	for _, a := range []pcommon.Map{s.Attributes(), td.ResourceSpans().At(0).Resource().Attributes()} {
		a.PutInt("ip", 1<<24|2<<16|3<<8|4)
		a.PutDouble("peer.ipv4", 3232235521)
		a.PutInt("port", 80)
	}
	tr := show(t, uijson.Options{}, td)
	want := []tag{{"ip", "string", "1.2.3.4"}, {"peer.ipv4", "string", "192.168.0.1"}, {"port", "int64", json.Number("80")}}
	equal(t, "tags", tr.Spans[0].Tags, want)
	equal(t, "process tags", tr.Processes["p1"].Tags, want)
	equal(t, "raw type", show(t, raw, td).Spans[0].Tags[0].Type, "int64")
	s.Attributes().PutStr("ip", "::1")
	equal(t, "text", show(t, uijson.Options{}, td).Spans[0].Tags[0], tag{"ip", "string", "::1"})
}

func TestLibraryTagsMoveToTheProcess(t *testing.T) {
	td, a := one()
	resource := td.ResourceSpans().At(0).Resource().Attributes()
	resource.PutStr("telemetry.sdk.name", "otel")
	resource.PutStr("zone", "z")
	a.Attributes().PutStr("telemetry.sdk.name", "otel")
	a.Attributes().PutStr("telemetry.sdk.language", "go")
	a.Attributes().PutStr("telemetry.other", "x")
	b := add(td.ResourceSpans().At(0).ScopeSpans().At(0), 2, 1)
	b.Attributes().PutStr("telemetry.sdk.name", "own")
	tr := show(t, uijson.Options{}, td)
	equal(t, "tags", tr.Spans[0].Tags, []tag{{"telemetry.other", "string", "x"}})
	equal(t, "process tags", tr.Processes[tr.Spans[0].ProcessID].Tags, []tag{
		{"telemetry.sdk.language", "string", "go"}, {"telemetry.sdk.name", "string", "otel"}, {"zone", "string", "z"}})
	equal(t, "conflicting tags", tr.Spans[1].Tags, []tag{{"telemetry.sdk.name", "string", "own"}})
	equal(t, "warnings", tr.Spans[1].Warnings, []string{"conflicting values between Span and Resource for attribute telemetry.sdk.name"})
	equal(t, "process tags", len(tr.Processes[tr.Spans[1].ProcessID].Tags), 2)
	equal(t, "raw tags", len(show(t, raw, td).Spans[0].Tags), 3)
}

func TestTagsAreSortedByKey(t *testing.T) {
	for _, n := range []int{0, 1, 2, 31, 32, 33, 200} {
		td, s := one()
		for i := range n { // every key except the last is one of seven, unsorted
			s.Attributes().PutInt(fmt.Sprint("k", i*5%7, " of ", n), int64(i))
		}
		s.Attributes().PutStr("a", "first")
		tags := show(t, uijson.Options{}, td).Spans[0].Tags
		if !slices.IsSortedFunc(tags, func(a, b tag) int { return strings.Compare(a.Key, b.Key) }) || tags[0].Key != "a" {
			t.Errorf("%d tags: %v", n, tags)
		}
	}
}

// Tags with the same key keep their order. Attributes may repeat on the wire, although pdata never
// writes them repeatedly.
func TestRepeatedTagsStayInOrder(t *testing.T) {
	td, s := one()
	s.Attributes().PutStr("otel.scope.name", "attribute")
	s.Attributes().PutStr("a", "x")
	td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().SetName("scope")
	equal(t, "tags", show(t, uijson.Options{}, td).Spans[0].Tags,
		[]tag{{"a", "string", "x"}, {"otel.scope.name", "string", "scope"}, {"otel.scope.name", "string", "attribute"}})
}
