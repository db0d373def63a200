package uijson_test

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/internal/translate/uijson"
)

// tree returns the spans as `id<parent`, with ids as short as they can be.
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
	f("1 2<1 3<2 4<3", "- 1 0", "c 2 1", "s 2 1", "- 4 2") // the child moves below the server
	f("1 2<1 4<2 3<4", "- 1 0", "c 2 1", "s 2 1", "s 3 2") // and a server below a server
	f("2 1<2", "s 2 0", "s 1 2")                           // no client, nothing shared
	f("2 1<2", "c 2 0", "s 1 2")                           // nothing shared
	f("2 1<2 3<2 4<3", "c 2 0", "s 2 0", "s 2 1", "- 4 2") // two servers: the last takes the children
	f("0 0 5", "c 0 0", "s 0 0", "- 5 0")                  // zero is nobody's id, and no parent
}

func TestRawKeepsSharedIDs(t *testing.T) {
	td, s := one()
	s.SetKind(ptrace.SpanKindClient)
	add(td.ResourceSpans().At(0).ScopeSpans().At(0), 1, 0).SetKind(ptrace.SpanKindServer)
	equal(t, "tree", tree(show(t, raw, td)), "1 1")
}

func TestDuplicatesAreShownOnce(t *testing.T) {
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
	f(1, func(a, _ ptrace.Span) { // the order of attributes is no difference
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

func TestDuplicatesOfSharedSpansAreShownOnce(t *testing.T) {
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
