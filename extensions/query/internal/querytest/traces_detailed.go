package querytest

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Detailed returns a trace with everything that the trace page shows: events, links in both
// directions, a call to a database that sends no spans, a host whose clock is late, a span that
// ends before it starts, an id that two spans share, and attributes of all types.
func Detailed() ptrace.Traces {
	td := ptrace.NewTraces()
	trace := pcommon.TraceID{15: 4}
	web, billing := AddService(td, "web"), AddService(td, "billing")
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("host.name", "a")
	td.ResourceSpans().At(1).Resource().Attributes().PutStr("host.name", "b")
	web.Scope().SetName("http")
	web.Scope().SetVersion("1.2")

	root := AddSpan(web, trace, 1, 0, "GET /cart", 0)
	root.SetKind(ptrace.SpanKindServer)
	root.Status().SetCode(ptrace.StatusCodeError)
	root.Status().SetMessage("cart is <empty>")
	root.TraceState().FromRaw("vendor=1")
	addAttributes(root.Attributes())
	addEvent(root, "retry", 50*time.Millisecond, "attempt", "2")
	addEvent(root, "exception", 20*time.Millisecond, "exception.type", "EmptyCart")

	query := AddSpan(web, trace, 2, 1, "GET", 10*time.Millisecond)
	query.SetKind(ptrace.SpanKindClient)
	query.Attributes().PutStr("db.system.name", "redis")
	call := AddSpan(web, trace, 3, 1, "POST /bill", 20*time.Millisecond)
	call.SetKind(ptrace.SpanKindClient)
	call.Attributes().PutStr("peer.service", "bank")
	late := AddSpan(billing, trace, 4, 3, "POST /bill", -500*time.Millisecond)
	late.SetKind(ptrace.SpanKindServer)
	late.SetEndTimestamp(late.StartTimestamp() + 10e6)
	async := AddSpan(billing, trace, 5, 4, "write <ledger>", -495*time.Millisecond)
	async.SetKind(ptrace.SpanKindInternal)
	addLink(async, trace, 1)
	addLink(async, pcommon.TraceID{15: 9}, 7)
	addLink(async, pcommon.TraceID{}, 7)
	AddSpan(billing, trace, 6, 5, "turned", 0).SetEndTimestamp(1)
	AddSpan(billing, trace, 7, 99, "one", 0)
	AddSpan(billing, trace, 7, 99, "two", 0)
	return td
}

func addAttributes(m pcommon.Map) {
	m.PutStr("user", "ann")
	m.PutInt("http.status", 500)
	m.PutDouble("ratio", 0.5)
	m.PutBool("cached", false)
	m.PutEmptyBytes("raw").FromRaw([]byte{0, 1})
	m.PutEmptySlice("tags").AppendEmpty().SetStr("x")
	m.PutEmptyMap("cart").PutInt("items", 0)
	m.PutEmpty("nothing")
}

func addEvent(s ptrace.Span, name string, after time.Duration, key, value string) {
	e := s.Events().AppendEmpty()
	e.SetName(name)
	e.SetTimestamp(s.StartTimestamp() + pcommon.Timestamp(after))
	e.Attributes().PutStr(key, value)
}

func addLink(s ptrace.Span, trace pcommon.TraceID, span byte) {
	l := s.Links().AppendEmpty()
	l.SetTraceID(trace)
	l.SetSpanID(pcommon.SpanID{7: span})
	l.Attributes().PutStr("reason", "caused by")
}
