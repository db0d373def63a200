package querytest

import (
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
)

// Start is the time of the first span of Shop, and Noon the time of the tests.
var (
	Start = time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC)
	Noon  = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
)

// Shop returns two traces: a request through two services that fails, and two spans with a 128-bit
// trace id.
func Shop() ptrace.Traces {
	td := ptrace.NewTraces()
	web := AddService(td, "web")
	s := AddSpan(web, pcommon.TraceID{15: 1}, 1, 0, "GET /", 0)
	s.SetKind(ptrace.SpanKindServer)
	s.Attributes().PutInt("http.status", 500)
	s.Status().SetCode(ptrace.StatusCodeError)
	s = AddSpan(AddService(td, "a/b"), pcommon.TraceID{15: 1}, 2, 1, "SELECT", time.Millisecond)
	s.SetKind(ptrace.SpanKindClient)
	s.Attributes().PutStr("db", "<x>")
	AddSpan(web, pcommon.TraceID{0: 0xab, 15: 2}, 3, 0, "cron", time.Second)
	AddSpan(web, pcommon.TraceID{0: 0xab, 15: 2}, 4, 0, "cron", 2*time.Second).SetKind(ptrace.SpanKindInternal)
	return td
}

// ShopWithPeers is like Shop with a message between services and with calls to a database, a queue
// and an external service.
func ShopWithPeers() ptrace.Traces {
	td := Shop()
	web, billing := AddService(td, "web"), AddService(td, "billing")
	trace := pcommon.TraceID{15: 3}
	sent := AddSpan(web, trace, 1, 0, "send", 3*time.Second)
	sent.SetKind(ptrace.SpanKindProducer)
	sent.Attributes().PutStr("messaging.system", "kafka")
	AddSpan(billing, trace, 2, 1, "receive", 4*time.Second).SetKind(ptrace.SpanKindConsumer)
	for i, peer := range [][2]string{{"db.system", "postgresql"}, {"db.system.name", "postgresql"}, {"messaging.system", "kafka"},
		{"peer.service", "<bank>"}} {
		s := AddSpan(billing, trace, byte(3+i), 2, "call", 5*time.Second)
		s.SetKind(ptrace.SpanKindClient)
		s.Attributes().PutStr(peer[0], peer[1])
		s.Status().SetCode(ptrace.StatusCode(i))
	}
	return td
}

// AddService adds a resource with a scope.
func AddService(td ptrace.Traces, name string) ptrace.ScopeSpans {
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", name)
	return rs.ScopeSpans().AppendEmpty()
}

// AddSpan adds a span of 100 ms that starts some time after Start.
func AddSpan(ss ptrace.ScopeSpans, trace pcommon.TraceID, id, parent byte, name string, after time.Duration) ptrace.Span {
	s := ss.Spans().AppendEmpty()
	s.SetTraceID(trace)
	s.SetSpanID(pcommon.SpanID{7: id})
	s.SetParentSpanID(pcommon.SpanID{7: parent})
	s.SetName(name)
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(Start.Add(after)))
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(Start.Add(after + 100*time.Millisecond)))
	return s
}

// Market is Shop with attributes of all types.
func Market() ptrace.Traces {
	td := Shop()
	s := AddSpan(AddService(td, "market"), pcommon.TraceID{15: 3}, 5, 0, "sell \"it\"", 3*time.Second)
	for key, value := range map[string]any{"http.status": "teapot", "price": 1.5, "paid": true, "a key": "v", "rare/slash": "x"} {
		if err := s.Attributes().PutEmpty(key).FromRaw(value); err != nil {
			panic(err)
		}
	}
	e := s.Events().AppendEmpty()
	e.SetName("exception")
	e.Attributes().PutStr("exception.type", "OutOfStock")
	e.Attributes().PutStr("shelf", "B2")
	s.Status().SetMessage("sold out")
	return td
}

// Many returns n traces of one span of the service svc, each later than the one before. change
// modifies them; i begins at 1.
func Many(n int, change func(i int, rs ptrace.ResourceSpans, s ptrace.Span)) ptrace.Traces {
	td := ptrace.NewTraces()
	for i := 1; i <= n; i++ {
		s := AddSpan(AddService(td, "svc"), pcommon.TraceID{15: byte(i)}, byte(i), 0, "op", time.Duration(i)*time.Millisecond)
		change(i, td.ResourceSpans().At(i-1), s)
	}
	return td
}

// Big returns three traces. Each response with one of them is longer than httpapi.FlushSize.
func Big() ptrace.Traces {
	return Many(3, func(_ int, _ ptrace.ResourceSpans, s ptrace.Span) {
		s.Attributes().PutStr("k", strings.Repeat("x", httpapi.FlushSize))
	})
}

// Unchanged is for Many.
func Unchanged(int, ptrace.ResourceSpans, ptrace.Span) {}

// Incident returns three hours of requests until Noon to web, which calls shop. Version 2 of shop
// appears 20 minutes before the end; most requests to it fail.
func Incident() ptrace.Traces {
	td := ptrace.NewTraces()
	web := AddService(td, "web")
	versions := []ptrace.ScopeSpans{AddService(td, "shop"), AddService(td, "shop")}
	for i := range versions {
		td.ResourceSpans().At(i+1).Resource().Attributes().PutStr("service.version", strconv.Itoa(i+1))
	}
	for i := range 360 {
		before := time.Duration(360-i) * 30 * time.Second
		trace, at, version := pcommon.TraceID{1, 14: byte(i >> 8), 15: byte(i)}, Noon.Sub(Start)-before, 0
		if before <= 20*time.Minute {
			version = i % 2
		}
		root, called := AddSpan(web, trace, 1, 0, "GET /", at), AddSpan(versions[version], trace, 2, 1, "buy", at)
		for _, s := range []ptrace.Span{root, called} {
			s.SetKind(ptrace.SpanKindServer)
			if version == 1 && i%8 != 7 {
				s.Status().SetCode(ptrace.StatusCodeError)
			}
		}
		if called.Status().Code() == ptrace.StatusCodeError {
			called.Attributes().PutStr("error.type", "OutOfStock")
		}
	}
	return td
}
